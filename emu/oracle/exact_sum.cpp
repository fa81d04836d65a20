#include "emu/oracle/exact_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "formats/error.hpp"
#include "formats/signalling_nan.hpp"

namespace numemu::oracle {
namespace {

using unit::Exponents;

const unit::UnitDescription* description_of(const Subject& s) {
  return s.unit != nullptr ? s.unit->description() : nullptr;
}

Exponents range_of(const Subject& s, const Layout& layout) {
  if (s.operation == Operation::convert) return {};
  Exponents range = product_range(unit::exponents_of(*s.a), unit::exponents_of(*s.b));
  if (s.operation == Operation::add) range = join(range, unit::exponents_of(*s.a));
  if (const unit::UnitDescription* u = description_of(s)) {
    if (u->scaling.format != nullptr) {
      const Exponents scales = unit::exponents_of(*u->scaling.format);
      range = product_range(range, product_range(scales, scales));
    }
    range.low -= u->scaling.shift;
    constexpr int kTableBits = 32;
    if (u->core == unit::CoreKind::table) range = join(range, {0, kTableBits});
    if (s.unit->c_format() == nullptr)
      range = join(range, {-unit::result_register(*u).fraction, unit::result_register(*u).bits});
  }
  if (const int c = find_field(layout, "c"); c >= 0) {
    const Format* format = layout[static_cast<std::size_t>(c)].format;
    if (format != nullptr) range = join(range, unit::exponents_of(*format));
  }
  return range;
}

/// v * scale, exact: scales have few bits.
Value times(Value v, const Value& scale) {
  if (scale.kind == Class::nan) return scale;
  if (v.kind != Class::finite) return v;
  if (scale.kind == Class::zero) return {.negative = v.negative};
  v.significand *= scale.significand;
  v.exponent += scale.exponent;
  return v;
}

}  // namespace

ExactSum::ExactSum(const Subject& s, const Layout& layout)
    : subject_(s),
      layout_(layout),
      a_(find_field(layout, s.operation == Operation::convert ? "in" : "a")),
      b_(find_field(layout, "b")),
      c_(find_field(layout, "c")),
      scale_a_(find_field(layout, "sa")),
      scale_b_(find_field(layout, "sb")),
      kept_(find_field(layout, "e")),
      sum_(range_of(s, layout), s.k + 2) {}

Value ExactSum::element(const Records& records, int field, std::int64_t at, std::int64_t i) const {
  const Field& f = layout_[static_cast<std::size_t>(field)];
  const std::uint64_t code = records.code(field, i * f.count + at);
  if (f.format != nullptr) {
    if (code > f.format->last_code())
      throw Error(fmt::format("{}: {:#x} is not a code of {}", f.name, code, f.format->name));
    return decode(*f.format, code);
  }
  const unit::Register& r = unit::result_register(*description_of(subject_));
  const int above = 64 - f.bits;
  return unit::value_of_sum(static_cast<std::int64_t>(code << above) >> above, -r.fraction);
}

Value ExactSum::scaled(const Records& records, std::int64_t i, std::int64_t p, Value a) const {
  const unit::UnitDescription* u = description_of(subject_);
  if (u == nullptr) return a;
  if (u->scaling.block != 0) {
    for (const int field : {scale_a_, scale_b_}) {
      const Field& f = layout_[static_cast<std::size_t>(field)];
      std::uint64_t code = records.code(field, i * f.count + p / u->scaling.block);
      if (f.format->is_signed) code &= ~f.format->sign_bit();
      a = times(a, decode(*f.format, code));
    }
  }
  a.exponent -= u->scaling.shift;
  return a;
}

void ExactSum::add_product(const Value& a, const Value& b, Result& result) {
  const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
  const bool zero = a.kind == Class::zero || b.kind == Class::zero;
  result.invalid |= is_signalling(a) || is_signalling(b) || (infinite && zero);
  if (a.kind == Class::finite && b.kind == Class::finite) {
    const auto product = static_cast<unsigned __int128>(a.significand) * b.significand;
    const auto high = static_cast<std::uint64_t>(product >> 64);
    const auto width =
        static_cast<int>(high != 0 ? 64 + std::bit_width(high)
                                   : std::bit_width(static_cast<std::uint64_t>(product)));
    result.largest_term = std::max(result.largest_term, a.exponent + b.exponent + width - 1);
  }
  sum_.add_product(a, b);
}

void ExactSum::add(const Value& c, Result& result) {
  result.invalid |= is_signalling(c);
  if (c.kind == Class::finite)
    result.largest_term = std::max(result.largest_term, unit::leading_exponent(c));
  sum_.add(c);
}

ExactSum::Result ExactSum::of(const Records& records, std::int64_t i) {
  Result result;
  if (subject_.operation == Operation::convert) {
    result.value = element(records, a_, 0, i);
    if (result.value.kind == Class::finite)
      result.largest_term = unit::leading_exponent(result.value);
    return result;
  }
  const unit::UnitDescription* u = description_of(subject_);
  const bool table = u != nullptr && u->core == unit::CoreKind::table;
  bool any_nan = false;
  sum_.clear();
  const std::int64_t products = layout_[static_cast<std::size_t>(a_)].count;
  for (std::int64_t p = 0; p < products; ++p) {
    std::int64_t k = p;
    if (kept_ >= 0) {
      const unit::Sparsity& s = u->sparsity;
      k = p / s.kept * s.group + static_cast<std::int64_t>(records.code(kept_, i * products + p));
    }
    if (table) {
      const std::uint64_t at = records.code(a_, i * products + p) << subject_.b->bits |
                               records.code(b_, i * subject_.k + k);
      add(unit::value_of_sum((*u->products)[static_cast<std::size_t>(at)], 0), result);
      continue;
    }
    const Value a = scaled(records, i, p, element(records, a_, p, i));
    const Value b = element(records, b_, k, i);
    any_nan |= a.kind == Class::nan || b.kind == Class::nan;
    if (subject_.operation == Operation::add) {
      add(a, result);
      add(b, result);
    } else {
      add_product(a, b, result);
    }
  }
  if (c_ >= 0) {
    const Value c = element(records, c_, 0, i);
    any_nan |= c.kind == Class::nan;
    add(c, result);
  }
  // A sum that cancels is -0 when rounded down (IEEE 754-2019, 6.3).
  result.value = sum_.sum(subject_.rounding.mode == RoundingMode::rdn);
  result.invalid |= result.value.kind == Class::nan && !any_nan;
  return result;
}

std::uint8_t flags_of(const ExactSum::Result& exact, const Format& to, const Encoded& encoded) {
  if (exact.invalid) return static_cast<std::uint8_t>(encoded.flags | kInvalid);
  const bool beyond = to.kind == Kind::integer && (encoded.flags & kOverflow) != 0;
  return beyond ? std::uint8_t{kInvalid} : encoded.flags;
}

}  // namespace numemu::oracle
