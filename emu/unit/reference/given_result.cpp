#include "emu/unit/reference/given_result.hpp"

#include <fmt/format.h>

#include <limits>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/divergence.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/losses.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/storage/number_text.hpp"

namespace numemu::unit {
namespace {

/// -1, 0, 1
int sign_of(const Value& v) { return v.kind == Class::zero ? 0 : v.negative ? -1 : 1; }

Value halved(Value v) {
  --v.exponent;
  return v;
}

/// Codes in the order of their numbers; zeros are one.
std::int64_t rank(const Format* format, int bits, std::uint64_t code) {
  if (format == nullptr || format->kind != Kind::floating) {
    const int unused = 64 - (format == nullptr ? bits : format->bits);
    return static_cast<std::int64_t>(code << unused) >> unused;
  }
  const std::uint64_t magnitude = format->is_signed ? code & ~format->sign_bit() : code;
  const auto steps = static_cast<std::int64_t>(magnitude);
  return format->is_signed && (code & format->sign_bit()) != 0 ? -steps : steps;
}

}  // namespace

Nearer nearer(const ReferenceDot& dot, std::int64_t i, std::int64_t j, const Value& first,
              const Value& second) {
  if (same_number(first, second)) return Nearer::neither;
  if (!is_finite(first) || !is_finite(second) || !is_finite(dot.exact(i, j))) {
    const Value exact = dot.exact(i, j);
    if (is_finite(exact) && is_finite(first) != is_finite(second))
      return is_finite(first) ? Nearer::first : Nearer::second;
    if (same_number(first, exact)) return Nearer::first;
    return same_number(second, exact) ? Nearer::second : Nearer::neither;
  }
  // The nearer of two numbers is on the same side of their middle as the sum.
  const int above = sign_of(dot.exact(i, j, {-halved(first), -halved(second)}));
  const int larger = sign_of(exact_sum({first, -second}));
  if (above == 0) return Nearer::neither;
  return above == larger ? Nearer::first : Nearer::second;
}

std::uint64_t ulps_between(const Format* format, int bits, std::uint64_t first,
                           std::uint64_t second) {
  if (format != nullptr) {
    const bool first_nan = decode(*format, first).kind == Class::nan;
    const bool second_nan = decode(*format, second).kind == Class::nan;
    if (first_nan && second_nan) return 0;
    if (first_nan || second_nan) return std::numeric_limits<std::uint64_t>::max();
  }
  const auto x = static_cast<std::uint64_t>(rank(format, bits, first));
  const auto y = static_cast<std::uint64_t>(rank(format, bits, second));
  return rank(format, bits, first) > rank(format, bits, second) ? x - y : y - x;
}

namespace {

std::string text(const Value& v) { return fmt::format("{} ({})", hex_text(v), decimal_text(v)); }

Value magnitude(Value v) {
  v.negative = false;
  return v;
}

bool larger(const Value& x, const Value& y) {
  const Value difference = exact_sum({magnitude(x), -magnitude(y)});
  return difference.kind == Class::finite && !difference.negative;
}

/// A loss and where it happened.
struct Loss {
  Value amount;
  std::string place;
};

std::vector<Loss> all_losses(const Trace& trace, const std::vector<StepLosses>& losses) {
  std::vector<Loss> all;
  for (std::size_t s = 0; s < losses.size(); ++s) {
    const TraceStep& step = trace.steps[s];
    for (std::size_t t = 0; t < step.terms.size(); ++t) {
      if (!losses[s].terms[t]) continue;
      const TraceTerm& term = step.terms[t];
      all.push_back({*losses[s].terms[t],
                     (term.k >= 0 ? fmt::format("k {}", term.k) : term.what) + " of " + step.what});
    }
    if (losses[s].rounding) all.push_back({*losses[s].rounding, "the rounding of " + step.what});
  }
  return all;
}

/// The roundings that make the sum the given number.
std::string roundings_to(const Format& format, const Value& exact, const Value& given) {
  std::string names;
  for (const RoundingMode mode : {RoundingMode::rne, RoundingMode::rna, RoundingMode::rtz,
                                  RoundingMode::rup, RoundingMode::rdn}) {
    const Rounding rounding{.mode = mode};
    const Value rounded = decode(format, encode(format, exact, rounding, Overflow::ieee).code);
    if (same_number(rounded, given)) names += (names.empty() ? "" : ", ") + to_string(rounding);
  }
  return names;
}

}  // namespace

std::vector<std::string> explain_result(const UnitDescription& unit, const Gemm& gemm,
                                        std::int64_t i, std::int64_t j, std::int64_t number,
                                        const Value& given) {
  Trace trace;
  std::uint64_t code = ReferenceDot(unit, gemm).outcome(i, j, i * gemm.n + j, number, &trace).code;
  const Format* d = result_format(unit);
  if (d != nullptr) code <<= d->container_shift;
  const Value own = read_element(d, unit.accumulator, &code, 0);
  const UnitDescription stored = as_stored(unit);
  const Value exact = ReferenceDot(stored, gemm).exact(i, j);
  std::vector<std::string> lines;
  if (!is_finite(own) || !is_finite(given) || !is_finite(exact)) return lines;
  const Value difference = exact_sum({given, -own});
  lines.push_back("the given result is the unit's plus " + text(difference));
  if (d != nullptr) {
    const std::string once = roundings_to(*d, exact, given);
    if (!once.empty()) lines.push_back("the given result is the exact sum rounded once by " + once);
  }
  const auto losses = find_losses(unit, gemm, i, j, trace);
  for (std::size_t s = 0; s < losses.size(); ++s) {
    if (!losses[s].off) continue;
    lines.push_back(fmt::format("the unit leaves the exact sum in {}: off by {}",
                                trace.steps[s].what, text(*losses[s].off)));
    break;
  }
  const std::vector<Loss> all = all_losses(trace, losses);
  const Loss* most = nullptr;
  for (const Loss& loss : all) {
    if (most == nullptr || larger(loss.amount, most->amount)) most = &loss;
  }
  if (most != nullptr)
    lines.push_back(fmt::format("its largest loss is at {}: {}", most->place, text(most->amount)));
  for (const Loss& loss : all) {
    if (!same_number(loss.amount, difference)) continue;
    lines.push_back("the difference is what it lost at " + loss.place);
    break;
  }
  return lines;
}

}  // namespace numemu::unit
