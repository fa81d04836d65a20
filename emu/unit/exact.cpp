// The core neutral.exact: an exact sum rounded once, fast wherever a proof covers host arithmetic.
#include <bit>
#include <type_traits>

#include "emu/unit/chain.hpp"
#include "emu/unit/core.hpp"
#include "emu/unit/exact_plan.hpp"
#include "emu/unit/exact_split.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

/// The chain of decoded operands from C.
template <class T>
void multiply_as(const Gemm& g, const Source<T>& a, const Source<T>& b) {
  Chain<T, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
}

Exponents present_in_c(const Gemm& g) {
  Exponents range;
  if (g.c == nullptr) return range;
  const auto* c = static_cast<const float*>(g.c);
  for (std::int64_t i = 0; i < g.m * g.n; ++i) range.include(value_of(c[i]));
  return range;
}

class Exact final : public Core {
 public:
  using Core::Core;

 protected:
  void compute(const Gemm& g) const override {
    const Present a = scan(g.a, g.m, g.k), b = scan(g.b, g.n, g.k);
    const ExactPlan plan = plan_exact(a.exponents, b.exponents, present_in_c(g), g.k);
    switch (plan.way) {
      case ExactPlan::Way::float32:
        return multiply_as(g, decode_as<float>(g.a, g.m, g.k), decode_as<float>(g.b, g.n, g.k));
      case ExactPlan::Way::float64:
        return multiply_as(g, decode_as<double>(g.a, g.m, g.k), decode_as<double>(g.b, g.n, g.k));
      case ExactPlan::Way::split:
        return multiply_split(g, plan, a.specials || b.specials);
      case ExactPlan::Way::kulisch:
        break;
    }
    compute_reference(g);
  }

  void compute_reference(const Gemm& g) const override {
    const Format& float32 = find_format("float32");
    const auto same = [](const Value& v) { return v; };
    const auto a = decode_source<Value>(g.a, g.m, g.k, same);
    const auto b = decode_source<Value>(g.b, g.n, g.k, same);
    const auto* c = static_cast<const float*>(g.c);
    auto* d = static_cast<float*>(g.d);
    const Exponents products = product_range(exponents_of(*g.a.format), exponents_of(*g.b.format));
    const Exponents range = join(products, exponents_of(float32));
    for_each_tile(g.m, g.n, g.k, kReferenceTile, [&](const Tile& tile) {
      Kulisch sum(range, g.k + 1);
      for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
        for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
          sum.clear();
          sum.add(c == nullptr ? Value{} : value_of(c[i * g.n + j]));
          for (std::int64_t k = 0; k < g.k; ++k)
            sum.add_product(a.values[a.row[i] + a.depth[k]], b.values[b.row[j] + b.depth[k]]);
          const std::uint64_t code = encode(float32, sum.sum(), Rounding{}, Overflow::ieee).code;
          d[i * g.n + j] = std::bit_cast<float>(static_cast<std::uint32_t>(code));
        }
      }
    });
  }

 private:
  /// The plan proved that T holds every value present; values of the format it does not hold are
  /// not read.
  template <class T>
  static Source<T> decode_as(const Operand& operand, std::int64_t rows, std::int64_t depth) {
    if constexpr (std::is_same_v<T, float>) {
      if (fits_float32(*operand.format)) return decode_floats(operand, rows, depth);
    }
    return decode_source<T>(operand, rows, depth,
                            [](const Value& v) { return static_cast<T>(double_or_nan(v)); });
  }
};

}  // namespace

std::unique_ptr<Unit> make_exact(UnitRow row) { return std::make_unique<Exact>(std::move(row)); }

}  // namespace numemu::unit
