#include "emu/oracle/classes.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {

namespace {

constexpr std::array<std::string_view, 11> kStyles = {
    "mixed",    "random", "edges",     "exhaustive", "cancel", "subnormal",
    "overflow", "ties",   "alignment", "near_ties",  "carry"};

}  // namespace

std::string_view to_string(Style style) { return kStyles[static_cast<std::size_t>(style)]; }

Style parse_style(std::string_view text) {
  return static_cast<Style>(index_named("style", text, kStyles));
}

namespace {

/// Fields of the layout whose product is a term of the sum, and the one that is a term itself.
constexpr std::array<std::string_view, 4> kFactors = {"a", "b", "sa", "sb"};
constexpr std::string_view kAddend = "c";

/// The unit's description with other kept bits, if there can be such a unit.
std::optional<unit::UnitDescription> with_kept_bits(const unit::UnitDescription& u, int bits) {
  unit::UnitDescription other = u;
  other.alignment.fraction_bits = bits;
  try {
    check_description(other);
  } catch (const Error&) {
    return std::nullopt;
  }
  return other;
}

}  // namespace

bool is_tie(const Format& to, const Value& number) {
  constexpr std::uint64_t kRoom = std::uint64_t{1} << 63;
  if (number.kind != Class::finite || number.sticky) return false;
  Value v = number;
  const int zeros = std::countr_zero(v.significand);
  v.significand >>= zeros;
  v.exponent += zeros;
  if (v.significand >= kRoom) return false;
  // Just below and just above, nearest gives different neighbours, and the number is neither.
  const Rounding rne{};
  const Value below{Class::finite, v.negative, true, v.exponent - 1, 2 * v.significand - 1};
  const Value above{Class::finite, v.negative, true, v.exponent, v.significand};
  const Encoded exact = encode(to, v, rne, Overflow::saturate);
  if ((exact.flags & kInexact) == 0 || (exact.flags & kOverflow) != 0) return false;
  return encode(to, below, rne, Overflow::saturate).code !=
         encode(to, above, rne, Overflow::saturate).code;
}

std::span<const Format* const> intermediate_formats() {
  static const std::array kFormats = {&find_format("float16"), &find_format("bfloat16"),
                                      &find_format("tfloat32"), &find_format("float32"),
                                      &find_format("float64")};
  return kFormats;
}

bool is_near_tie(const Format& to, const Value& v) {
  if (v.kind != Class::finite || is_tie(to, v)) return false;
  return std::ranges::any_of(intermediate_formats(), [&](const Format* wide) {
    return wide->mantissa_bits >= to.mantissa_bits && wide->name != to.name &&
           is_tie(to, decode(*wide, encode(*wide, v, {}, Overflow::ieee).code));
  });
}

bool is_carry(const Format& to, const Value& v) {
  if (v.kind != Class::finite) return false;
  const Encoded cut = encode(to, v, {.mode = RoundingMode::rtz}, Overflow::saturate);
  if ((cut.flags & kInexact) == 0 || (cut.flags & kOverflow) != 0) return false;
  const std::uint64_t kept = to.kind == Kind::floating
                                 ? cut.code & ((std::uint64_t{1} << to.mantissa_bits) - 1)
                                 : decode(to, cut.code).significand;
  const bool ones = (kept & (kept + 1)) == 0;
  return to.kind == Kind::floating ? ones && kept >> (to.mantissa_bits - 1) != 0
                                   : ones && kept != 0;
}

bool is_beyond(const Format& to, const Value& v) {
  if (v.kind != Class::finite) return false;
  const Encoded cut = encode(to, v, {.mode = RoundingMode::rtz}, Overflow::saturate);
  return (cut.flags & kOverflow) != 0;
}

bool is_subnormal(const Format& f, const Value& v) {
  if (f.kind != Kind::floating || v.kind != Class::finite) return false;
  if (f.field_zero != FieldZero::subnormal && f.field_zero != FieldZero::flush) return false;
  return unit::leading_exponent(v) < unit::smallest_normal_exponent(f);
}

Classifier::Classifier(const Subject& s, const Layout& layout)
    : subject_(s), layout_(layout), exact_(s, layout) {
  if (s.unit == nullptr) return;
  const unit::UnitDescription& u = *s.unit->description();
  if (u.core != unit::CoreKind::fused) return;
  fewer_ = with_kept_bits(u, u.alignment.fraction_bits - 1);
  more_ = with_kept_bits(u, u.alignment.fraction_bits + 1);
  own_ = std::make_unique<UnitDot>(s, layout);
  if (fewer_) by_fewer_ = std::make_unique<UnitDot>(s, layout, &*fewer_);
  if (more_) by_more_ = std::make_unique<UnitDot>(s, layout, &*more_);
}

bool Classifier::is_hard_case(const Value& v) const {
  const Arithmetic arithmetic = row_of(subject_.operation).arithmetic;
  const bool inexact = arithmetic == Arithmetic::quotient || arithmetic == Arithmetic::root;
  if (!inexact || v.kind != Class::finite || subject_.to->kind != Kind::floating) return false;
  if (unit::leading_exponent(v) < unit::smallest_normal_exponent(*subject_.to)) return false;
  if (is_beyond(*subject_.to, v)) return false;
  // What the result drops, left-aligned, is near to one half of 2^64.
  constexpr int kNear = 20;
  const int kept = subject_.to->mantissa_bits + 1;
  const std::uint64_t dropped = v.significand << std::countl_zero(v.significand) << kept;
  // a / b and the root of a come as near as 1 / b, and 1 / a by a small factor.
  const int nearest = arithmetic == Arithmetic::quotient ? kept - 1 : kept - 5;
  const int near = std::min({kNear, 64 - kept - 2, nearest});
  if (near < 1) return false;  // of few bits no result is nearer than others
  const std::uint64_t half = std::uint64_t{1} << 63;
  const std::uint64_t distance = dropped >= half ? dropped - half : half - dropped;
  return (distance != 0 || v.sticky) && distance <= std::uint64_t{1} << (63 - near);
}

bool Classifier::beyond_register(const Value& v) const {
  if (subject_.to != nullptr) return is_beyond(*subject_.to, v);
  const unit::Register& r = unit::result_register(*subject_.unit->description());
  if (v.kind != Class::finite) return false;
  // Two's complement reaches one further on the negative side.
  const int leading = unit::leading_exponent(v) + r.fraction;
  const bool power = (v.significand & (v.significand - 1)) == 0 && !v.sticky;
  return leading >= r.bits || (leading == r.bits - 1 && !(v.negative && power));
}

bool Classifier::may_overflow() const {
  if (row_of(subject_.operation).arithmetic != Arithmetic::products || subject_.to == nullptr ||
      subject_.to->kind != Kind::floating)
    return true;
  const unit::Exponents to = unit::exponents_of(*subject_.to);
  // Of n numbers below 2^e the sum is below 2^(e + bit_width(n - 1)).
  int products = std::bit_width(static_cast<std::uint64_t>(layout_.front().count - 1));
  int room = 1;  // largest >= 2^(to.top - room): what the products alone must not reach
  for (const Field& field : layout_) {
    const bool factor = std::ranges::count(kFactors, field.name) > 0;
    if (!factor && field.name != kAddend) continue;
    if (field.format == nullptr || field.format->kind == Kind::codebook) return true;
    const int top = unit::exponents_of(*field.format).top;
    if (factor) {
      products += top;
      continue;
    }
    if (top > to.top || (top == to.top && field.format->name != subject_.to->name)) return true;
    room = 1 + subject_.to->mantissa_bits;  // beside the largest c: a unit in its last place
  }
  return products > to.top - room;
}

bool Classifier::any_subnormal_input(const Records& records, std::int64_t i) const {
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    const Field& field = layout_[f];
    const bool scale = field.name == "sa" || field.name == "sb";
    if (field.result || field.format == nullptr || scale) continue;
    for (std::int64_t e = 0; e < field.count; ++e) {
      const std::uint64_t code = records.code(static_cast<int>(f), i * field.count + e);
      if (is_subnormal(*field.format, decode(*field.format, code))) return true;
    }
  }
  return false;
}

bool Classifier::is(Style style, const Records& records, std::int64_t i) {
  if (style == Style::subnormal && any_subnormal_input(records, i)) return true;
  const ExactSum::Result exact = exact_.of(records, i);
  const Value& v = exact.value;
  switch (style) {
    case Style::cancel:
      if (row_of(subject_.operation).arithmetic != Arithmetic::sum &&
          !row_of(subject_.operation).has_c)
        return false;
      if (v.kind == Class::zero) return exact.largest_term != INT_MIN;
      return v.kind == Class::finite && unit::leading_exponent(v) <= exact.largest_term - 2;
    case Style::subnormal:
      return subject_.to != nullptr && is_subnormal(*subject_.to, v);
    case Style::overflow:
      return beyond_register(v);
    case Style::ties:
      return subject_.to != nullptr && is_tie(*subject_.to, v);
    case Style::near_ties:
      return subject_.to != nullptr && (is_near_tie(*subject_.to, v) || is_hard_case(v));
    case Style::carry: {
      // Of few terms the sum has no more bits than any other.
      const auto products = static_cast<std::uint64_t>(layout_.front().count);
      const int above = std::bit_width(products) - 1;
      return (subject_.to != nullptr && is_carry(*subject_.to, v)) ||
             (above > 0 && v.kind == Class::finite &&
              unit::leading_exponent(v) >= exact.largest_term + above);
    }
    default:
      return true;
  }
}

std::string_view Classifier::alignment(const Records& records, std::int64_t i) {
  const std::uint64_t d = own_->of(records, i);
  if (by_more_ != nullptr && by_more_->of(records, i) != d) return "alignment_F+1";
  if (by_fewer_ != nullptr && by_fewer_->of(records, i) != d) return "alignment_F";
  return {};
}

}  // namespace numemu::oracle
