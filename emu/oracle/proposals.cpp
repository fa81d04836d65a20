// Cold: a negligible share of any run (docs/build.md).
#include "emu/oracle/proposals.hpp"

#include <algorithm>
#include <bit>

#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

namespace {

constexpr std::int64_t kMostPowers = 64;

void sort_once(std::vector<std::uint64_t>& codes) {
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
}

/// Codes within `distance` of these, as far as there are any.
std::vector<std::uint64_t> with_neighbours(const Format& f, std::vector<std::uint64_t> codes,
                                           std::uint64_t distance) {
  const std::size_t n = codes.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::uint64_t d = 1; d <= distance; ++d) {
      if (codes[i] >= d) codes.push_back(codes[i] - d);
      if (f.last_code() - codes[i] >= d) codes.push_back(codes[i] + d);
    }
  }
  sort_once(codes);
  return codes;
}

std::uint64_t code_of_power(const Format& f, int exponent) {
  return encode(f, {Class::finite, false, false, exponent, 1}, {.mode = RoundingMode::rtz},
                Overflow::saturate)
      .code;
}

}  // namespace

std::vector<std::uint64_t> edge_codes(const Format& f, int level) {
  std::vector<std::uint64_t> codes = {0, 1, f.largest_code(), f.largest_code() - 1, f.last_code()};
  if (f.kind == Kind::floating) {
    const int normal = unit::smallest_normal_exponent(f);
    const std::uint64_t hidden = std::uint64_t{1} << f.mantissa_bits, one = code_of_power(f, 0);
    codes.insert(codes.end(), {hidden, hidden - 1, one, one - (one != 0), one + 1});
    if (f.has_infinity()) codes.push_back(f.infinity_code());
    if (f.has_nan()) codes.push_back(f.nan_code());
    if (f.specials == Specials::ieee && f.mantissa_bits > 1)
      codes.push_back(f.infinity_code() + 1);  // a signalling NaN
    const int top = unit::exponents_of(f).top;
    const auto step = static_cast<int>(std::max<std::int64_t>((top - normal) / kMostPowers, 1));
    for (int e = normal; level > 1 && e < top; e += step) codes.push_back(code_of_power(f, e));
  }
  if (level > 1) codes = with_neighbours(f, std::move(codes), 1);
  const std::size_t n = codes.size();
  for (std::size_t i = 0; i < n; ++i) codes.push_back(codes[i] | f.sign_bit());
  std::erase_if(codes, [&](std::uint64_t code) { return code > f.last_code(); });
  sort_once(codes);
  return codes;
}

std::vector<std::uint64_t> conversion_edges(const Format& from, const Format& to, int level) {
  std::vector<std::uint64_t> codes = edge_codes(from, level), there;
  for (const std::uint64_t edge : edge_codes(to, level)) {
    const Value v = decode(to, edge);
    if (v.kind != Class::finite) continue;
    there.push_back(encode(from, v, {.mode = RoundingMode::rtz}, Overflow::saturate).code);
  }
  there = with_neighbours(from, std::move(there), static_cast<std::uint64_t>(level));
  codes.insert(codes.end(), there.begin(), there.end());
  sort_once(codes);
  return codes;
}

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

namespace {

constexpr std::uint64_t kMostInputs = std::uint64_t{1} << 32;

bool is_input(const Field& f) { return !f.result; }

/// Codes that an element of the field can have.
std::uint64_t codes_of(const Field& f) {
  const std::uint64_t last =
      f.format != nullptr ? f.format->last_code() : ~std::uint64_t{0} >> (64 - f.bits);
  return last == ~std::uint64_t{0} ? last : last + 1;
}

/// Scales that move whole blocks would move small addends away from the last kept bit.
bool scaled_by_exponents(const Subject& s) {
  return s.unit != nullptr &&
         s.unit->description()->scaling.point == unit::Scaling::Point::exponents;
}

}  // namespace

Proposer::Proposer(const Subject& s, const Layout& layout)
    : subject_(s), layout_(layout), draft_(s, layout) {
  for (const Field& f : layout) {
    edges_.emplace_back();
    if (f.result || f.format == nullptr) continue;
    edges_.back() = is_unary(s.operation) ? conversion_edges(*f.format, *s.to, s.level)
                                          : edge_codes(*f.format, s.level);
  }
}

void Proposer::propose(Style style, Dice& dice, Classifier& classifier, Records& records,
                       std::int64_t i) {
  records_ = &records;
  i_ = i;
  draft_.begin(records, i);
  draft_.clear(dice);
  const bool unscaled = style == Style::near_ties || style == Style::carry ||
                        (style == Style::alignment && scaled_by_exponents(subject_));
  draft_.put_sides(dice, /*scales=*/!unscaled);
  switch (style) {
    case Style::edges:
      return edges(dice);
    case Style::cancel:
      return cancel(dice, classifier);
    case Style::subnormal:
      return subnormal(dice);
    case Style::overflow:
      return overflow(dice);
    case Style::ties:
      return ties(dice, classifier);
    case Style::alignment:
      return alignment(dice);
    case Style::near_ties:
      return near_ties(dice, classifier);
    case Style::carry:
      return carry(dice);
    case Style::random:
    case Style::mixed:
    case Style::exhaustive:
      break;
  }
  random(dice);
}

std::int64_t Proposer::inputs() const {
  std::uint64_t all = 1;
  for (const Field& f : layout_) {
    if (!is_input(f)) continue;
    const std::uint64_t codes = codes_of(f);
    for (std::int64_t e = 0; e < f.count; ++e) {
      if (codes > kMostInputs / all) return 0;
      all *= codes;
    }
  }
  return static_cast<std::int64_t>(all);
}

void Proposer::put_input(std::int64_t n, Records& records, std::int64_t i) {
  draft_.begin(records, i);
  auto rest = static_cast<std::uint64_t>(n);
  // The last input runs fastest.
  for (std::size_t f = layout_.size(); f-- > 0;) {
    const Field& field = layout_[f];
    const std::uint64_t codes = codes_of(field);
    for (std::int64_t e = field.count; is_input(field) && e-- > 0; rest /= codes)
      draft_.put(static_cast<int>(f), e, rest % codes);
  }
}

std::int64_t Proposer::edge_combinations() const {
  std::uint64_t all = 1;
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    if (!is_input(layout_[f])) continue;
    const std::uint64_t edges = edges_[f].size();
    if (layout_[f].count != 1 || edges == 0 || edges > kMostInputs / all) return 0;
    all *= edges;
  }
  return static_cast<std::int64_t>(all);
}

void Proposer::put_edges(std::int64_t n, Records& records, std::int64_t i) {
  draft_.begin(records, i);
  for (std::size_t f = layout_.size(); f-- > 0;) {
    if (!is_input(layout_[f])) continue;
    const auto size = static_cast<std::int64_t>(edges_[f].size());
    draft_.put(static_cast<int>(f), 0, edges_[f][static_cast<std::size_t>(n % size)]);
    n /= size;
  }
}

/// Products of similar size, or of any; sums of wide formats would be one addend otherwise.
void Proposer::random_products(Dice& dice) {
  constexpr int kCentre = 6;
  constexpr int kSpreads[] = {1, 3, 8, 100000};
  const ExponentReach reach = draft_.product_reach();
  const int spread = kSpreads[dice.below(4)];
  const int centre = std::clamp(dice.between(-kCentre, kCentre), reach.normal, reach.high);
  const int low = std::max(centre - spread, reach.low),
            high = std::min(centre + spread, reach.high);
  const int bits = dice.flip() ? draft_.operand_bits() : dice.between(1, draft_.operand_bits());
  if (draft_.row().arithmetic != Arithmetic::products) {
    const ExponentReach& here = draft_.reach(draft_.a());
    const int size = dice.between(here.low, here.high);
    const bool negative_a = dice.flip();
    draft_.put_number(dice, draft_.a(), 0, size, bits, negative_a);
    if (draft_.row().arithmetic != Arithmetic::sum &&
        draft_.row().arithmetic != Arithmetic::quotient && dice.flip())
      return neighbours(dice);
    const bool negative_b = dice.flip();
    const int less = dice.between(0, spread);
    return draft_.put_number(dice, draft_.b(), 0, size - less, bits, negative_b);
  }
  for (std::int64_t p = 0; p < draft_.products(); ++p) {
    const bool negative = dice.flip();
    const int exponent = dice.between(low, high);
    draft_.put_product(dice, p, exponent, bits, negative);
  }
}

void Proposer::neighbours(Dice& dice) {
  const Field& field = draft_.field(draft_.b());
  const std::uint64_t sign = field.format->sign_bit();
  std::uint64_t code = draft_.code(draft_.a());
  const std::uint64_t beside = code ^ dice.bits(2);
  if (dice.flip() && beside <= field.format->last_code()) code = beside;
  if (sign != 0 && dice.below(4) == 0 && (code ^ sign) <= field.format->last_code()) code ^= sign;
  draft_.put(draft_.b(), 0, code);
}

void Proposer::random(Dice& dice) {
  constexpr int kAny = 4, kNear = 4;
  const bool any = dice.below(kAny) == 0;
  if (draft_.row().arithmetic == Arithmetic::root) {
    if (any) return draft_.put_any(dice, draft_.a(), 0);
    const ExponentReach& here = draft_.reach(draft_.a());
    const bool negative = dice.below(2 * kAny) == 0;
    const int exponent = dice.between(here.low, here.high);
    return draft_.put_number(dice, draft_.a(), 0, exponent, draft_.operand_bits(), negative);
  }
  if (draft_.b() < 0) {
    const Format& to = *subject_.to;
    if (any || to.kind == Kind::codebook || subject_.a->kind == Kind::codebook)
      return draft_.put_any(dice, draft_.a(), 0);
    const unit::Exponents there = unit::exponents_of(to);
    const bool negative = dice.flip();
    const int exponent = dice.between(there.low - kNear, there.top + 1);
    return draft_.put_number(dice, draft_.a(), 0, exponent, draft_.operand_bits(), negative);
  }
  if (any) {
    // One operand of any code, special or not; the others are finite.
    const std::int64_t chosen = dice.below(draft_.products());
    for (std::int64_t p = 0; p < draft_.products(); ++p) {
      draft_.put_finite(dice, draft_.a(), p);
      draft_.put_finite(dice, draft_.b(), draft_.partner(p));
    }
    const int side = dice.flip() ? draft_.a() : draft_.b();
    draft_.put_any(dice, side, chosen);
    if (draft_.c() >= 0) draft_.put_any(dice, draft_.c(), 0);
    return;
  }
  random_products(dice);
  if (draft_.c() < 0 || dice.below(kAny) == 0) return;
  const ExponentReach products = draft_.product_reach();
  const int low = std::max(products.normal - kNear, -2 * kNear * kNear),
            high = std::min(products.high + kNear, 2 * kNear * kNear);
  const bool negative = dice.flip();
  const int exponent = dice.between(low, high);
  draft_.put_number(dice, draft_.c(), 0, exponent, 64, negative);
}

void Proposer::edges(Dice& dice) {
  const auto edge = [&](int f, std::int64_t at) {
    const auto& codes = edges_[static_cast<std::size_t>(f)];
    if (codes.empty()) return draft_.put_any(dice, f, at);
    draft_.put(
        f, at,
        codes[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(codes.size())))]);
  };
  if (draft_.b() < 0) return edge(draft_.a(), 0);
  // A product of edges or two among ordinary ones: more would all be NaN.
  if (draft_.products() > 1 && dice.flip()) random_products(dice);
  for (std::int64_t n = 1 + dice.below(2); n > 0; --n) {
    const std::int64_t p = dice.below(draft_.products());
    edge(draft_.a(), p);
    edge(draft_.b(), draft_.partner(p));
  }
  if (draft_.c() >= 0) edge(draft_.c(), 0);
  for (const int f : {draft_.scale_a(), draft_.scale_b()}) {
    if (f < 0 || dice.below(4) != 0) continue;
    const std::int64_t at = dice.below(draft_.field(f).count);
    edge(f, at);
  }
}

}  // namespace numemu::oracle
