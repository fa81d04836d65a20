// The chain kernel as a fast path: the host's fused multiply-add is exactly the model.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/chain/float_chain.hpp"

#include <bit>
#include <cmath>
#include <string_view>

#include "emu/unit/chain/chain.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/operand.hpp"

namespace numemu::unit {
namespace {

/// The register, C and D are all this format.
bool all_of(const UnitDescription& u, std::string_view format) {
  const auto is = [&](const Format* f) { return f != nullptr && f->name == format; };
  return is(u.accumulator.format) && is(c_format(u)) && is(result_format(u));
}

bool multiply_float32(const Gemm& g) {
  if (!fits_float32(*g.a.format) || !fits_float32(*g.b.format)) return false;
  const Source<float> a = decode_floats(g.a, g.m, g.k), b = decode_floats(g.b, g.n, g.k);
  Chain<float, float> chain{g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const float*>(g.c);
  chain.d = static_cast<float*>(g.d);
  run_chain(chain);
  return true;
}

/// NaN is made canonical at the end: which one it is on the way changes nothing else.
bool multiply_float64(const Gemm& g, std::uint64_t nan_code) {
  if (!chain_fuses()) return false;
  const auto a = decode_numbers<double>(g.a, g.m, g.k), b = decode_numbers<double>(g.b, g.n, g.k);
  auto* d = static_cast<double*>(g.d);
  Chain<double, double> chain{
      g.m, g.n, g.k, {a.values, a.row, a.depth}, {b.values, b.row, b.depth}};
  chain.c = static_cast<const double*>(g.c);
  chain.d = d;
  run_chain(chain);
  const double nan = std::bit_cast<double>(nan_code);
  for (std::int64_t i = 0; i < g.m * g.n; ++i) d[i] = std::isnan(d[i]) ? nan : d[i];
  return true;
}

}  // namespace

bool multiply_float_chain(const UnitDescription& u, const Gemm& g) {
  if (u.core != CoreKind::chain) return false;
  if (all_of(u, "float32") && u.nan_code == 0x7fc00000) return multiply_float32(g);
  return all_of(u, "float64") && multiply_float64(g, u.nan_code);
}

}  // namespace numemu::unit
