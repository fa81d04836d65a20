// Computes piece by piece, writes and prints.
#include "cli/product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "cli/product_compare.hpp"
#include "cli/product_summary.hpp"
#include "cli/progress.hpp"
#include "cli/unit_trace.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"

namespace numemu::cli {
namespace {

/// Pieces of work small enough that long work shows itself. A stochastic register counts its
/// elements in the whole batch, which is then one piece.
class Multiplier {
 public:
  Multiplier(const unit::Unit& unit, const ProductOptions& options, Array& flags)
      : unit_(unit), options_(options), flags_(flags.as<std::uint8_t>()) {
    if (flags.elements() == 0) flags_ = nullptr;
    constexpr std::int64_t kQuick = std::int64_t{1} << 30, kSlowRate = 1 << 6;
    const unit::UnitDescription* u = unit.description();
    whole_ = u != nullptr && u->accumulator.rounding.stochastic();
    budget_ = by_reference() ? kQuick / kSlowRate : kQuick;
  }

  void multiply(const unit::Batch& batch) {
    if (batch.count == 1) return by_rows(batch);
    const unit::Gemm& g = batch.first;
    const std::int64_t macs = std::max<std::int64_t>(g.m * g.n * g.k, 1);
    each_piece(batch.count, macs, "products", [&](std::int64_t begin, std::int64_t end) {
      run(unit::slice(unit_, batch, begin, end), begin * g.m * g.n);
    });
  }

 private:
  bool by_reference() const { return options_.reference || flags_ != nullptr; }

  void run(const unit::Batch& part, std::int64_t first_output) const {
    if (by_reference()) {
      unit::multiply_batch_reference(unit_, part,
                                     flags_ == nullptr ? nullptr : flags_ + first_output);
    } else {
      unit::multiply_batch(unit_, part);
    }
  }

  template <class Piece>
  void each_piece(std::int64_t count, std::int64_t macs, const char* unit, const Piece& piece) {
    const std::int64_t size = whole_ ? count : std::max<std::int64_t>(budget_ / macs, 1);
    if (size >= count) return piece(std::int64_t{0}, count);
    Progress progress(options_.files.shape == GemmShape::dots ? "dot" : "gemm", count, unit,
                      options_.quiet);
    for (std::int64_t begin = 0; begin < count; begin += size) {
      const std::int64_t end = std::min(count, begin + size);
      piece(begin, end);
      progress.show(end);
    }
  }

  void by_rows(const unit::Batch& batch) {
    const unit::Gemm& g = batch.first;
    const auto kept = static_cast<std::int64_t>(g.a.gather->depth.size());
    const unit::UnitDescription* u = unit_.description();
    const std::int64_t blocks =
        u != nullptr && u->scaling.block != 0 ? (g.k + u->scaling.block - 1) / u->scaling.block : 0;
    const std::int64_t c_bytes = g.m * g.n == 0 ? 0 : bytes_of_result(unit_, unit_.c_format());
    const std::int64_t d_bytes = g.m * g.n == 0 ? 0 : bytes_of_result(unit_, unit_.d_format());
    const std::int64_t macs = std::max<std::int64_t>(g.n * g.k, 1);
    each_piece(g.m, macs, "rows", [&](std::int64_t begin, std::int64_t end) {
      unit::Batch rows = batch;
      unit::Gemm& part = rows.first;
      part.m = end - begin;
      unit::Gather own = *g.a.gather;
      own.row.assign(g.a.gather->row.begin() + begin, g.a.gather->row.begin() + end);
      part.a.gather = &own;
      if (g.c != nullptr) part.c = static_cast<const std::byte*>(g.c) + begin * g.n * c_bytes;
      part.d = static_cast<std::byte*>(g.d) + begin * g.n * d_bytes;
      if (g.scale_a != nullptr) part.scale_a = g.scale_a + begin * blocks;
      if (g.kept != nullptr) part.kept = g.kept + begin * kept;
      run(rows, begin * g.n);
    });
  }
  static std::int64_t bytes_of_result(const unit::Unit& unit, const Format* format) {
    return unit::bytes_of(format, unit.description() == nullptr
                                      ? unit::Register{}
                                      : unit::result_register(*unit.description()));
  }

  const unit::Unit& unit_;
  const ProductOptions& options_;
  std::uint8_t* flags_;
  bool whole_ = false;
  std::int64_t budget_ = 0;
};

/// D = RNE(RNE(alpha * acc) + C), acc the product without C.
void apply_alpha(float alpha, GemmArrays& arrays) {
  const FloatGuard guard;
  auto* values = arrays.d.as<float>();
  const auto* c = static_cast<const float*>(arrays.gemm.c);
  const std::int64_t own = arrays.batch.c_shared ? arrays.c.elements() : arrays.d.elements();
  for (std::int64_t i = 0; i < arrays.d.elements(); ++i) {
    const float scaled = alpha * values[i];
    const float sum = scaled + (c == nullptr ? 0.0f : c[i % own]);
    values[i] = sum != sum ? std::bit_cast<float>(0x7fc00000u) : sum;
  }
}

int print_trace(const ProductOptions& options, const unit::Unit& unit, const GemmArrays& arrays) {
  const unit::UnitDescription* u = unit.description();
  if (u == nullptr)
    throw Error("--trace: unit " + unit.row().name + " has no description and cannot be traced");
  const Place place = parse_place("--trace", options.trace, arrays);
  const unit::Gemm g = unit::slice(unit, arrays.batch, place.product, place.product + 1).first;
  unit::Trace trace;
  unit::ReferenceDot(*u, g).outcome(place.i, place.j, place.i * g.n + place.j,
                                    output_of(place, arrays.batch), &trace);
  const UnitTrace words(unit, g, place.i, place.j, std::move(trace));
  if (options.json) {
    Json json = words.json();
    add_place(place, arrays, json);
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", words.text(place_text(place, arrays)));
  }
  return kFine;
}

}  // namespace

int run_product(const ProductOptions& options) {
  check_product_options(options);
  const unit::Unit& unit = unit_named(options.unit);
  if (!options.flags.empty()) unit::require_flags(unit);
  GemmArrays arrays;
  read_gemm(unit, options.files, arrays);
  arrays.gemm.seed = options.seed;
  if (!options.trace.empty()) return print_trace(options, unit, arrays);
  Array flags(ArrayType::uint8, options.flags.empty() ? ArrayShape{0} : arrays.d.shape);
  if (!options.alpha) {
    Multiplier(unit, options, flags).multiply(arrays.batch);
  } else {
    if (unit.d_format() == nullptr || unit.d_format()->name != "float32")
      throw Error(fmt::format("--alpha: expected a unit with float32 results, {} gives {}",
                              unit.row().name, unit.row().result));
    unit::Batch products = arrays.batch;
    products.first.c = nullptr;
    Multiplier(unit, options, flags).multiply(products);
    apply_alpha(*options.alpha, arrays);
  }
  if (!options.compare.empty()) print_comparison(options, unit, arrays);
  if (options.out.empty()) return kFine;
  OutputFiles files;
  add_gemm_result(unit, options.out, arrays.d, options.seed, files);
  if (!options.flags.empty())
    files.add_array("flags", options.flags, flags.type, flags.shape, flags.data.data());
  files.publish();
  if (options.compare.empty()) print_summary(options, unit, arrays);
  return kFine;
}

}  // namespace numemu::cli
