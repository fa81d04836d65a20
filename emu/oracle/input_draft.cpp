#include "emu/oracle/input_draft.hpp"

#include <algorithm>
#include <bit>

#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

namespace {

ExponentReach reach_of(const Subject& s, const Field& field) {
  if (field.format == nullptr) {
    if (s.unit == nullptr) return {};
    const unit::Register& r = unit::result_register(*s.unit->description());
    return {-r.fraction, -r.fraction, r.bits - 2 - r.fraction};
  }
  const Format& f = *field.format;
  const unit::Exponents range = unit::exponents_of(f);
  if (f.kind != Kind::floating) return {0, 0, std::max(f.bits - (f.is_signed ? 2 : 1), 0)};
  return {range.low, unit::smallest_normal_exponent(f), range.top - 1};
}

bool has_signs(const Field& field) { return field.format == nullptr || field.format->is_signed; }

int first_of(const Layout& layout, std::string_view name, std::string_view other) {
  const int f = find_field(layout, name);
  return f >= 0 ? f : find_field(layout, other);
}

}  // namespace

InputDraft::InputDraft(const Subject& s, const Layout& layout)
    : subject_(s),
      layout_(layout),
      row_(row_of(s.operation)),
      a_(first_of(layout, "a", "in")),
      b_(find_field(layout, "b")),
      c_(find_field(layout, "c")),
      last_(row_.arithmetic == Arithmetic::sum ? b_ : c_),
      scale_a_(find_field(layout, "sa")),
      scale_b_(find_field(layout, "sb")),
      kept_(find_field(layout, "e")),
      random_(first_of(layout, "r", "random")) {
  for (const Field& f : layout) reach_.push_back(reach_of(s, f));
}

std::uint64_t InputDraft::code(int f, std::int64_t at) const {
  return records_->code(f, i_ * field(f).count + at);
}

void InputDraft::put(int f, std::int64_t at, std::uint64_t code) {
  records_
      ->columns[static_cast<std::size_t>(f)][static_cast<std::size_t>(i_ * field(f).count + at)] =
      code;
}

void InputDraft::put(int f, std::int64_t at, const Value& v) { put(f, at, nearest(field(f), v)); }

void InputDraft::put_addend(int f, const Value& v) {
  put(f, 0, f == last_ && row_.negates_last ? -v : v);
}

std::uint64_t InputDraft::nearest(const Field& field, const Value& v) const {
  if (field.format != nullptr) return encode(*field.format, v, {}, Overflow::saturate).code;
  // Two's complement: cut toward zero, and saturated on both sides alike.
  const unit::Register& r = unit::result_register(*subject_.unit->description());
  if (v.kind != Class::finite) return 0;
  const int shift = v.exponent + r.fraction;
  const std::uint64_t most = (std::uint64_t{1} << (r.bits - 1)) - 1;
  std::uint64_t magnitude = 0;
  if (shift > 0) {
    magnitude = shift >= std::countl_zero(v.significand) ? most : v.significand << shift;
  } else if (shift > -64) {
    magnitude = v.significand >> -shift;
  }
  magnitude = std::min(magnitude, most);
  const std::uint64_t code = v.negative ? ~magnitude + 1 : magnitude;
  return code & (std::uint64_t{2} * most + 1);
}

std::int64_t InputDraft::partner(std::int64_t p) const {
  if (kept_ < 0) return p;
  const unit::Sparsity& s = subject_.unit->description()->sparsity;
  return p / s.kept * s.group + static_cast<std::int64_t>(code(kept_, p));
}

void InputDraft::clear(Dice& dice) {
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    const Field& field = layout_[f];
    if (field.result) continue;
    const int number = static_cast<int>(f);
    const bool scale = number == scale_a_ || number == scale_b_;
    const Value v = scale ? Value{Class::finite, false, false, 0, 1} : Value{};
    const std::uint64_t code = field.format == nullptr ? 0 : nearest(field, v);
    for (std::int64_t e = 0; e < field.count; ++e) put(number, e, code);
  }
  if (kept_ < 0) return;
  const unit::Sparsity& s = subject_.unit->description()->sparsity;
  for (std::int64_t p = 0; p < products(); p += s.kept) {
    // Selection sampling: each index is kept with the chance that fills what is left.
    std::int64_t chosen = 0;
    for (int index = 0; index < s.group && chosen < s.kept; ++index) {
      if (dice.below(s.group - index) < s.kept - chosen)
        put(kept_, p + chosen++, static_cast<std::uint64_t>(index));
    }
  }
}

void InputDraft::put_sides(Dice& dice, bool scales) {
  constexpr int kSpread = 3;
  for (const int f : {scale_a_, scale_b_}) {
    for (std::int64_t e = 0; scales && f >= 0 && e < field(f).count; ++e) {
      const int exponent = dice.between(-kSpread, kSpread);
      put_number(dice, f, e, exponent, field(f).format->mantissa_bits + 1, false);
    }
  }
  for (std::int64_t e = 0; random_ >= 0 && e < field(random_).count; ++e)
    put(random_, e, dice.bits(field(random_).bits));
}

void InputDraft::put_any(Dice& dice, int f, std::int64_t at) {
  const Field& to = field(f);
  std::uint64_t code = dice.bits(to.bits);
  if (to.format != nullptr) code %= to.format->last_code() + (to.bits == 64 ? 0 : 1);
  put(f, at, code);
}

void InputDraft::put_finite(Dice& dice, int f, std::int64_t at) {
  const Field& to = field(f);
  do {
    put_any(dice, f, at);
  } while (to.format != nullptr && [&] {
    const Class kind = decode(*to.format, code(f, at)).kind;
    return kind == Class::nan || kind == Class::infinite;
  }());
}

void InputDraft::put_number(Dice& dice, int f, std::int64_t at, int exponent, int bits,
                            bool negative) {
  const ExponentReach& reach_here = reach(f);
  exponent = std::clamp(exponent, reach_here.low, reach_here.high);
  // Fewer bits where the exponent is that of a subnormal number or a small integer.
  bits = std::clamp(bits, 1, std::max(exponent - reach_here.low + 1, 1));
  const std::uint64_t significand = std::uint64_t{1} << (bits - 1) | dice.bits(bits - 1);
  put(f, at,
      Value{Class::finite, negative && has_signs(field(f)), false, exponent - (bits - 1),
            significand});
}

void InputDraft::put_largest(int f, std::uint64_t codes, bool negative) {
  const Field& to = field(f);
  if (to.format != nullptr) {
    const std::uint64_t largest = to.format->largest_code();
    return put(f, 0, (largest - std::min(codes, largest)) | (negative ? to.format->sign_bit() : 0));
  }
  const std::uint64_t top = std::uint64_t{1} << (to.bits - 1);
  put(f, 0, negative ? top + std::min(codes, top - 1) : top - 1 - std::min(codes, top - 1));
}

void InputDraft::put_product(Dice& dice, std::int64_t p, int exponent, int bits, bool negative) {
  const ExponentReach &a = reach(a_), &b = reach(b_);
  const int from = std::max(a.low, exponent - b.high), to = std::min(a.high, exponent - b.low);
  // Normal factors where there are such.
  const int from_normal = std::max(a.normal, exponent - b.high),
            to_normal = std::min(a.high, exponent - b.normal);
  const bool normal = from_normal <= to_normal;
  const int of_a = normal ? dice.between(from_normal, to_normal) : dice.between(from, to);
  const bool first = dice.flip();
  put_number(dice, a_, p, of_a, bits, first);
  put_number(dice, b_, partner(p), exponent - of_a, bits,
             (first != negative) != row_.negates_products);
}

void InputDraft::put_quotient(Dice& dice, int exponent, int bits, bool negative) {
  const ExponentReach &a = reach(a_), &b = reach(b_);
  const int of_b =
      dice.between(std::max(b.normal, a.normal - exponent), std::min(b.high, a.high - exponent));
  const bool first = dice.flip();
  put_number(dice, a_, 0, exponent + of_b, bits, first);
  put_number(dice, b_, 0, of_b, bits, first != negative);
}

ExponentReach InputDraft::product_reach() const {
  const ExponentReach &a = reach(a_), &b = reach(b_);
  return {a.low + b.low, a.normal + b.normal, a.high + b.high};
}

ExponentReach InputDraft::term_reach() const {
  const ExponentReach& a = reach(a_);
  switch (row_.arithmetic) {
    case Arithmetic::products:
      return product_reach();
    case Arithmetic::quotient:
      return {a.low - reach(b_).high, a.normal - reach(b_).high, a.high - reach(b_).normal};
    case Arithmetic::root:
      return {a.low / 2, a.normal / 2, a.high / 2};
    default:
      return b_ >= 0 ? reach(b_) : a;
  }
}

int InputDraft::operand_bits() const {
  const Format& f = *field(a_).format;
  return f.kind == Kind::floating ? f.mantissa_bits + 1 : std::max(f.bits - 1, 1);
}

}  // namespace numemu::oracle
