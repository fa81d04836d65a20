#include "policies/numerics/overflow_sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/gather.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/containers.hpp"
#include "formats/portable/spread.hpp"

namespace numemu::policies {
namespace {

using unit::Register;
using unit::UnitDescription;

/// Whether some sum of products of these formats reaches the end of a register that hides it.
bool may_leave(const UnitDescription& u, const unit::Gemm& g) {
  const unit::Exponents a = unit::exponents_of(*g.a.format), b = unit::exponents_of(*g.b.format);
  if (a.empty() || b.empty()) return false;
  int top = a.top + b.top + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(g.k)));
  if (u.scaling.block != 0) top += 2 * std::max(0, unit::exponents_of(*u.scaling.format).top);
  const auto beyond = [&](const Register& r) {
    const int end =
        r.format != nullptr ? unit::exponents_of(*r.format).top - 1 : r.bits - 1 - r.fraction;
    return hides_overflow(r) && top > end;
  };
  return beyond(u.accumulator) || beyond(unit::result_register(u));
}

/// Some lines of an operand, one after the other.
struct SampledRows {
  std::vector<std::byte> codes;
  std::vector<std::uint8_t> scales;
  unit::Gather gather;

  unit::Operand operand(const Format* format) const { return {format, codes.data(), &gather}; }
};

/// Offsets in the padded source become those in the source; -1 in the border.
void find_in_source(const unit::Padding& padding, std::vector<std::int64_t>& at) {
  if (padding.identity()) return;
  std::vector<std::pair<std::int64_t, std::size_t>> wanted;
  for (std::size_t i = 0; i < at.size(); ++i) wanted.emplace_back(at[i], i);
  std::sort(wanted.begin(), wanted.end());
  std::fill(at.begin(), at.end(), -1);
  for (std::int64_t o = 0; o < padding.outer; ++o) {
    unit::for_each_padding_span(
        padding, o, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
          auto found =
              std::lower_bound(wanted.begin(), wanted.end(), std::pair(to, std::size_t{0}));
          for (; found != wanted.end() && found->first < to + count; ++found)
            at[found->second] = from + found->first - to;
        });
  }
}

SampledRows sampled_rows(const unit::Operand& operand, const std::vector<std::int64_t>& numbers,
                         std::int64_t k, const std::uint8_t* scales, std::int64_t blocks) {
  SampledRows lines;
  std::vector<std::int64_t> at;
  for (const std::int64_t line : numbers) {
    for (const std::int32_t depth : operand.gather->depth)
      at.push_back(operand.gather->row[static_cast<std::size_t>(line)] + depth);
    if (scales != nullptr)
      lines.scales.insert(lines.scales.end(), scales + line * blocks, scales + (line + 1) * blocks);
  }
  find_in_source(operand.gather->padding, at);
  const auto bytes = static_cast<std::size_t>(container_bytes(*operand.format));
  lines.codes.assign(at.size() * bytes, std::byte{0});  // the border is +0
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0) continue;
    const auto* const from = static_cast<const std::byte*>(operand.codes);
    std::memcpy(lines.codes.data() + i * bytes, from + static_cast<std::size_t>(at[i]) * bytes,
                bytes);
  }
  lines.gather = unit::Gather::matrix(std::ssize(numbers), k);
  return lines;
}

}  // namespace

bool hides_overflow(const Register& r) {
  if (r.format == nullptr || r.overflow == Overflow::saturate) return true;
  const RoundingMode mode = r.rounding.mode;
  return !r.overflow_to_infinity && (mode == RoundingMode::rtz || mode == RoundingMode::rup ||
                                     mode == RoundingMode::rdn || mode == RoundingMode::rodd);
}

bool wraps(const Register& r) {
  return r.format == nullptr && r.integer == unit::IntegerOverflow::wrap;
}

std::string_view overflow_words(const UnitDescription& u) {
  bool wrap = false, stop = false;
  for (const Register* r : {&u.accumulator, &unit::result_register(u)}) {
    wrap = wrap || wraps(*r);
    stop = stop || (hides_overflow(*r) && !wraps(*r));
  }
  return wrap && stop ? "saturated on the way or wrapped"
         : wrap       ? "wrapped"
         : stop       ? "saturated on the way"
                      : kNotFiniteWords;
}

std::string counted_share(std::int64_t some, std::int64_t all) {
  if (some == 0) return fmt::format("0 of {}", all);
  return fmt::format("{:.3g} % of {}", 100 * static_cast<double>(some) / static_cast<double>(all),
                     all);
}

void OverflowSample::multiply(const unit::Gemm& g) const {
  unit_.multiply(g);
  if (g.c == nullptr && g.kept == nullptr && std::min({g.m, g.n, g.k}) > 0) look(g);
}

void OverflowSample::look(const unit::Gemm& g) const {
  const UnitDescription* const u = description();
  if (u == nullptr || !may_leave(*u, g)) return;
  const std::int64_t block = u->scaling.block, blocks = block == 0 ? 0 : (g.k + block - 1) / block;
  const std::int64_t count = std::min(g.m * g.n, kSampledResults);
  std::vector<std::int64_t> rows, columns;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t element = count < kSampledResults ? i : spread(i, draw_, g.m * g.n);
    rows.push_back(element / g.n);
    columns.push_back(element % g.n);
  }
  const SampledRows a = sampled_rows(g.a, rows, g.k, g.scale_a, blocks),
                    b = sampled_rows(g.b, columns, g.k, g.scale_b, blocks);
  unit::Gemm some;
  some.m = count;
  some.n = count;
  some.k = g.k;
  some.a = a.operand(g.a.format);
  some.b = b.operand(g.b.format);
  if (block != 0) {
    some.scale_a = a.scales.data();
    some.scale_b = b.scales.data();
  }
  some.seed = g.seed;
  some.tensor = g.tensor;
  const unit::ReferenceDot dot(*u, some);
  const Register& r = unit::result_register(*u);
  const Format* const d = unit::result_format(*u);
  // A sum that wraps and comes back is right.
  double wrapped = HUGE_VAL;
  for (const Register* one : {&u->accumulator, &r}) {
    if (wraps(*one)) wrapped = std::min(wrapped, std::ldexp(0.5, one->bits - one->fraction));
  }
  std::int64_t overflowed = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto s = static_cast<std::size_t>(i);
    const unit::Outcome outcome = dot.outcome(i, i, 0, rows[s] * g.n + columns[s]);
    bool left = outcome.overflowed;
    if (!left && wrapped != HUGE_VAL) {
      const double held = unit::double_or_nan(unit::element_value(d, r, outcome.code));
      left = std::fabs(unit::double_or_nan(dot.exact(i, i)) - held) >= wrapped;
    }
    overflowed += left;
  }
  sampled_ += count;
  overflowed_ += overflowed;
}

}  // namespace numemu::policies
