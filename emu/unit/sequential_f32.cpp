// The core neutral.f32.sequential: one chain of float32 fused multiply-adds per output.
#include <bit>

#include "emu/unit/chain.hpp"
#include "emu/unit/core.hpp"
#include "emu/unit/kulisch.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/tiles.hpp"
#include "formats/codec.hpp"

namespace numemu::unit {
namespace {

class SequentialF32 final : public FloatCore {
 public:
  using FloatCore::FloatCore;

 protected:
  void compute(const Gemm& g) const override {
    const Source<float> a = decode_floats(g.a, g.m, g.k), b = decode_floats(g.b, g.n, g.k);
    Chain<float, float> chain{
        g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
    chain.c = static_cast<const float*>(g.c);
    chain.d = static_cast<float*>(g.d);
    run_chain(chain);
  }

  /// A fused multiply-add is an exact sum of one product and one term, rounded once.
  void compute_reference(const Gemm& g) const override {
    const Format& float32 = find_format("float32");
    const auto same = [](const Value& v) { return v; };
    const auto a = decode_source<Value>(g.a, g.m, g.k, same);
    const auto b = decode_source<Value>(g.b, g.n, g.k, same);
    const auto* c = static_cast<const float*>(g.c);
    auto* d = static_cast<float*>(g.d);
    const Exponents range = exponents_of(float32);
    const auto round = [&](const Value& v) {
      return encode(float32, v, Rounding{}, Overflow::ieee).code;
    };
    for_each_tile(g.m, g.n, g.k, kReferenceTile, [&](const Tile& tile) {
      Kulisch sum(join(product_range(range, range), range), 2);
      for (std::int64_t i = tile.row_begin; i < tile.row_end; ++i) {
        for (std::int64_t j = tile.lane_begin; j < tile.lane_end; ++j) {
          std::uint64_t code = round(c == nullptr ? Value{} : value_of(c[i * g.n + j]));
          for (std::int64_t k = 0; k < g.k; ++k) {
            sum.clear();
            sum.add_product(a.values[a.row[i] + a.depth[k]], b.values[b.row[j] + b.depth[k]]);
            sum.add(decode(float32, code));
            code = round(sum.sum());
          }
          // A NaN handed in as C leaves as the canonical one.
          const bool nan = decode(float32, code).kind == Class::nan;
          d[i * g.n + j] =
              std::bit_cast<float>(nan ? 0x7fc00000u : static_cast<std::uint32_t>(code));
        }
      }
    });
  }
};

}  // namespace

std::unique_ptr<Unit> make_sequential_f32(UnitRow row) {
  return std::make_unique<SequentialF32>(std::move(row));
}

}  // namespace numemu::unit
