#include "emu/oracle/proposer.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "emu/oracle/edge_codes.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {

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

/// How far from a tie, as powers of two of half a unit in the last place, where operands reach it.
constexpr int kNearTie = 20, kNearestTie = 44;

Value power(int exponent, bool negative) { return {Class::finite, negative, false, exponent, 1}; }

std::uint64_t ones(int bits) { return (std::uint64_t{1} << bits) - 1; }

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

// Inputs whose results matter: sums that cancel, tiny and large results, ties, last kept bits.

int Proposer::half_unit(Dice& dice, int room) const {
  const ExponentReach there =
      draft_.reach(find_field(layout_, subject_.operation == Operation::unit ? "d" : "out"));
  const ExponentReach factors = draft_.term_reach();
  const int above = subject_.to->mantissa_bits + 1;
  const bool alone = draft_.last() < 0;  // then the result is the number or the product itself
  const int low = std::max(alone ? factors.low - above : factors.low + room, there.normal - above),
            high = std::min(alone ? factors.high - above : factors.high, there.high - above - 1);
  return dice.between(low, high);
}

void Proposer::put_partner(std::int64_t p, const Value& product) {
  Value a = decode(*subject_.a, draft_.code(draft_.a(), p));
  if (a.kind != Class::finite) return;
  const bool negative = (a.negative != product.negative) != draft_.row().negates_products;
  a.negative = false;
  Value b = exact_quotient(product, a);
  b.negative = negative;
  draft_.put(draft_.b(), draft_.partner(p), b);
}

Value Proposer::product(const Value& x, const Value& y) {
  unit::Kulisch exact(unit::join({x.exponent + y.exponent, x.exponent + y.exponent + 128}, {}), 1);
  exact.add_product(x, y);
  return exact.sum();
}

void Proposer::put_result(Dice& dice, const Value& wanted) {
  const int bits = draft_.operand_bits();
  const ExponentReach& a = draft_.reach(draft_.a());
  switch (draft_.row().arithmetic) {
    case Arithmetic::products: {
      const bool sign = dice.flip();
      const int of_a = dice.between(a.normal, a.high);
      draft_.put_number(dice, draft_.a(), 0, of_a, bits, sign);
      return put_partner(0, wanted);
    }
    case Arithmetic::quotient: {
      const ExponentReach& b = draft_.reach(draft_.b());
      const int size = unit::leading_exponent(wanted);
      const bool sign = dice.flip();
      const int of_b =
          dice.between(std::max(b.normal, a.normal - size), std::min(b.high, a.high - 1 - size));
      draft_.put_number(dice, draft_.b(), 0, of_b, bits, sign);
      const Value divisor = decode(*subject_.b, draft_.code(draft_.b()));
      if (divisor.kind == Class::finite) draft_.put(draft_.a(), 0, product(wanted, divisor));
      return;
    }
    case Arithmetic::root: {
      Value root = wanted;
      root.negative = false;
      return draft_.put(draft_.a(), 0, product(root, root));
    }
    default:
      return random(dice);
  }
}

/// q * b = 2^(p + 1) a +- 1 for odd q of p + 1 bits, b of p bits and an integer a: the quotient of
/// a and b lies 2^-2p or so from the tie q (Parks, Number-theoretic test generation for directed
/// rounding, 1999).
void Proposer::hard_quotient(Dice& dice) {
  const int kept = subject_.to->mantissa_bits + 1, own = draft_.operand_bits();
  const std::uint64_t modulus_mask = ones(kept + 1);
  const std::uint64_t b = std::uint64_t{1} << (own - 1) | dice.bits(own - 1) | 1;
  std::uint64_t q = b;  // its inverse modulo 2^3; every step doubles the bits
  for (int known = 3; known < kept + 1; known *= 2) q *= 2 - b * q;
  q &= modulus_mask;
  if (q >> kept == 0) q = (0 - q) & modulus_mask;
  __extension__ typedef unsigned __int128 Wide;
  const auto a = static_cast<std::uint64_t>((Wide{q} * b + 1) >> (kept + 1));
  if (a == 0) return;
  // As a normal quotient, where operands reach that.
  const ExponentReach &of_a = draft_.reach(draft_.a()), &of_b = draft_.reach(draft_.b()),
                      &there = draft_.reach(find_field(layout_, "out"));
  const int wide_a = static_cast<int>(std::bit_width(a)) - 1;
  const int size_b = dice.between(of_b.normal, of_b.high);
  const int size_a = dice.between(std::max(of_a.normal, there.normal + size_b + 1),
                                  std::min(of_a.high, there.high + size_b - 1));
  const bool negative_a = dice.flip(), negative_b = dice.flip();
  draft_.put(draft_.a(), 0, Value{Class::finite, negative_a, false, size_a - wide_a, a});
  draft_.put(draft_.b(), 0, Value{Class::finite, negative_b, false, size_b - (own - 1), b});
}

/// r * r = 2^k a + c for odd r of p + 1 bits, an integer a of p bits and a small c: the root of a
/// lies 2^-2p or so from the tie r.
void Proposer::hard_root(Dice& dice) {
  const int kept = subject_.to->mantissa_bits + 1;
  // r * r has 2 p + 1 or 2 p + 2 bits, of which p are a's.
  const int k = kept + 1 + static_cast<int>(dice.below(2));
  if (k > 62) return;
  // c is 1 modulo 8: then it has a root modulo every power of two.
  const std::uint64_t c = 8 * dice.bits(3) - 24 + 1;
  std::uint64_t r = 1 + 2 * dice.bits(1);
  for (int bit = 3; bit < k; ++bit) {
    if (((r * r - c) >> bit & 1) != 0) r += std::uint64_t{1} << (bit - 1);
  }
  // The four roots modulo 2^k differ in their sign and their highest bit.
  if (dice.flip()) r = 0 - r;
  if (dice.flip()) r += std::uint64_t{1} << (k - 1);
  r &= ones(kept);
  r |= std::uint64_t{1} << kept;
  __extension__ typedef unsigned __int128 Wide;
  const Wide square = Wide{r} * r;
  const auto a = static_cast<std::uint64_t>((square + (std::uint64_t{1} << (k - 1))) >> k);
  const ExponentReach& here = draft_.reach(draft_.a());
  const int width = static_cast<int>(std::bit_width(a));
  // An even number of places, so that the root has the same digits.
  int exponent = dice.between(here.normal, here.high) - (width - 1);
  if ((exponent - k) % 2 != 0) ++exponent;
  draft_.put(draft_.a(), 0, Value{Class::finite, false, false, exponent, a});
}

/// The side of the tie on which rounding to the tie first, then to even, goes wrong.
void Proposer::near_ties(Dice& dice, Classifier& classifier) {
  if (!has_neighbours()) return random(dice);
  if (draft_.row().arithmetic == Arithmetic::number) {
    ties(dice, classifier);
    const std::uint64_t tie = draft_.code(draft_.a());
    const bool next = dice.flip();
    if (next ? tie < subject_.a->last_code() : tie > 0)
      draft_.put(draft_.a(), 0, next ? tie + 1 : tie - 1);
    return;
  }
  const bool divides = draft_.row().arithmetic == Arithmetic::quotient;
  if ((divides || draft_.row().arithmetic == Arithmetic::root) && subject_.to->mantissa_bits > 1 &&
      dice.below(4) != 0)
    return divides ? hard_quotient(dice) : hard_root(dice);
  const ExponentReach reach = draft_.term_reach();
  const int span = std::max(reach.high - reach.low, 1);
  const int near = dice.between(std::min(kNearTie, span), std::min(kNearestTie, span));
  const int shift = subject_.unit != nullptr ? subject_.unit->description()->scaling.shift : 0;
  const int half = half_unit(dice, near);
  const int kept = subject_.to->mantissa_bits;
  const std::uint64_t fraction = dice.bits(kept);
  const bool negative = dice.flip() && subject_.to->is_signed;
  const Value tie{Class::finite, negative, false, half,
                  (std::uint64_t{1} << kept | fraction) << 1 | 1};
  const Value beside = power(half - near, negative == ((fraction & 1) == 0));
  const int bits = draft_.operand_bits();
  if (draft_.last() < 0) return put_result(dice, tie);
  // The first addend is the tie, or a neighbour; the others are what is missing.
  const bool sum = draft_.row().arithmetic == Arithmetic::sum;
  const int first = sum ? draft_.a() : draft_.c();
  draft_.put_addend(first, tie);
  const Field& field = draft_.field(first);
  if (field.format == nullptr) return;
  Value placed = decode(*field.format, draft_.code(first));
  if (!sum && draft_.row().negates_last) placed = -placed;
  Value rest = difference(tie, placed);
  if (sum) {
    // As near to half a unit as one number can be.
    const int step = rest.kind == Class::zero ? near : std::min(near, bits - 1);
    return draft_.put_addend(draft_.b(), difference(rest, power(half - step, !beside.negative)));
  }
  rest.exponent += shift;
  const Value small = power(beside.exponent + shift, beside.negative);
  const bool whole = rest.kind == Class::finite;
  if (draft_.products() == 1 && whole) {
    const bool sign = dice.flip();
    const int of_a = dice.between(draft_.reach(draft_.a()).normal, draft_.reach(draft_.a()).high);
    draft_.put_number(dice, draft_.a(), 0, of_a, bits, sign);
    return put_partner(0, rest);
  }
  if (whole) draft_.put_product(dice, 0, half + shift, 1, rest.negative);
  const std::int64_t other = draft_.products() - 1;
  draft_.put_product(dice, other, small.exponent, 1, small.negative);
}

void Proposer::carry(Dice& dice) {
  const bool sum = draft_.products() > 1 && (!has_neighbours() || dice.flip());
  if (sum) return sum_carry(dice);
  if (!has_neighbours()) return random(dice);
  rounding_carry(dice);
}

/// Every bit that the result keeps is a one, and something follows.
void Proposer::rounding_carry(Dice& dice) {
  const int kept = subject_.to->mantissa_bits + 1, bits = draft_.operand_bits();
  const int half = half_unit(dice, 1);
  const bool negative = dice.flip() && subject_.to->is_signed;
  const Value below{Class::finite, negative, false, half + 1, ones(kept)};
  if (draft_.row().arithmetic == Arithmetic::number) {
    const int more = bits - kept;
    if (more <= 0) return;
    const std::uint64_t rest = dice.bits(more) | 1;
    return draft_.put(
        draft_.a(), 0,
        Value{Class::finite, negative, false, half + 1 - more, ones(kept) << more | rest});
  }
  if (draft_.last() < 0)
    return put_result(dice, Value{Class::finite, negative, false, half, ones(kept + 1)});
  dice.flip();               // files of earlier versions drew a sign here
  constexpr int kBelow = 3;  // of half a unit
  const int size = half - static_cast<int>(dice.below(kBelow));
  if (draft_.row().arithmetic == Arithmetic::sum) {
    draft_.put(draft_.a(), 0, below);
    return draft_.put_number(dice, draft_.b(), 0, size, bits,
                             negative != draft_.row().negates_last);
  }
  draft_.put_addend(draft_.c(), below);
  const std::int64_t p = dice.below(draft_.products());
  const int shift = subject_.unit != nullptr ? subject_.unit->description()->scaling.shift : 0;
  draft_.put_product(dice, p, size + shift, bits, negative);
}

/// Products of one sign and size, whose sum has log2(K) bits more; a few at the last bit kept.
void Proposer::sum_carry(Dice& dice) {
  const ExponentReach reach = draft_.product_reach();
  const std::int64_t products = draft_.products();
  const int carried = std::bit_width(static_cast<std::uint64_t>(products));
  const Field& last = draft_.field(draft_.c());
  const int top = std::min(reach.high, draft_.reach(draft_.c()).high - carried - 1);
  const int large = dice.between(std::min(reach.normal + carried, top), top);
  const bool negative = dice.flip();
  const int bits = draft_.operand_bits();
  // One product everywhere, here and there a little smaller: others might be twice as large.
  draft_.put_product(dice, 0, large, bits, negative);
  const std::uint64_t a = draft_.code(draft_.a(), 0),
                      b = draft_.code(draft_.b(), draft_.partner(0));
  for (std::int64_t p = 1; p < products; ++p) {
    const bool smaller = dice.below(4) == 0;
    draft_.put(draft_.a(), p, smaller ? a & ~std::uint64_t{1} : a);
    draft_.put(draft_.b(), draft_.partner(p), b);
  }
  const bool aligned =
      subject_.unit != nullptr && subject_.unit->description()->core == unit::CoreKind::fused;
  const int kept = aligned                  ? subject_.unit->description()->alignment.fraction_bits
                   : subject_.to != nullptr ? subject_.to->mantissa_bits - carried
                                            : 1;
  constexpr std::int64_t kOneIn = 8;
  for (std::int64_t n = 0; n < products / kOneIn; ++n) {
    const std::int64_t p = dice.below(products);
    const int size = large - kept + dice.between(0, 2);
    const bool sign = dice.flip();
    draft_.put_product(dice, p, size, bits, sign);
  }
  if (last.format == nullptr || dice.flip()) return;
  const int size = large - dice.between(0, kept);
  draft_.put_number(dice, draft_.c(), 0, size, 64, negative);
}

Value Proposer::sum_without_last(Classifier& classifier) {
  draft_.put(draft_.last(), 0, Value{});
  return classifier.exact().of(*records_, i_).value;
}

void Proposer::cancel(Dice& dice, Classifier& classifier) {
  if (draft_.last() < 0) return;
  random_products(dice);
  const bool pairs = draft_.products() > 1 && dice.flip();
  if (pairs) {
    // Each product meets its negative; the operands of one in four differ by a code.
    const std::int64_t half = draft_.products() / 2;
    for (std::int64_t p = 0; p < half; ++p) {
      const std::uint64_t a = draft_.code(draft_.a(), p),
                          b = draft_.code(draft_.b(), draft_.partner(p));
      const std::uint64_t sign = draft_.field(draft_.b()).format->sign_bit();
      draft_.put(draft_.a(), half + p, a);
      draft_.put(draft_.b(), draft_.partner(half + p), b ^ sign ^ (dice.below(4) == 0 ? 1 : 0));
    }
    if (draft_.products() % 2 != 0) draft_.put(draft_.a(), 2 * half, Value{});
    if (dice.flip()) return;
  }
  const Value sum = sum_without_last(classifier);
  draft_.put_addend(draft_.last(), -sum);
  // A few codes beside what cancels best.
  constexpr std::int64_t kCodes = 4;
  const std::int64_t beside = dice.below(kCodes);
  const std::uint64_t code = draft_.code(draft_.last());
  const Field& last = draft_.field(draft_.last());
  const std::uint64_t sign = last.format != nullptr ? last.format->sign_bit() : 0;
  if ((code & ~sign) > static_cast<std::uint64_t>(beside))
    draft_.put(draft_.last(), 0, code - static_cast<std::uint64_t>(beside));
}

void Proposer::subnormal(Dice& dice) {
  constexpr int kBeyond = 2;
  const Format& a = *subject_.a;
  const int bits = draft_.operand_bits();
  if (draft_.b() < 0) {
    const bool of_result = dice.flip() && subject_.to->kind == Kind::floating;
    const Format& f = of_result ? *subject_.to : a;
    if (f.kind != Kind::floating) return random(dice);
    const int top = unit::smallest_normal_exponent(f) - 1;
    const int low = unit::exponents_of(f).low - (of_result ? kBeyond : 0);
    const bool negative = dice.flip();
    const int exponent = dice.between(low, top);
    return draft_.put_number(dice, draft_.a(), 0, exponent, bits, negative);
  }
  if (subject_.to == nullptr || subject_.to->kind != Kind::floating) return random(dice);
  const int normal = unit::smallest_normal_exponent(*subject_.to);
  const int low = unit::exponents_of(*subject_.to).low - kBeyond;
  const ExponentReach& of_a = draft_.reach(draft_.a());
  const bool inputs = dice.flip();  // subnormal inputs, or a subnormal result
  const bool products = draft_.row().arithmetic == Arithmetic::products;
  if (draft_.row().arithmetic == Arithmetic::quotient && !inputs) {
    const bool negative = dice.flip();
    const int exponent = dice.between(low, normal);
    return draft_.put_quotient(dice, exponent, bits, negative);
  }
  for (std::int64_t p = 0; p < draft_.products(); ++p) {
    if (!products || (inputs && dice.flip())) {
      for (const int f : {draft_.a(), draft_.b()}) {
        const ExponentReach& r = draft_.reach(f);
        const std::int64_t at = f == draft_.a() ? p : draft_.partner(p);
        const bool negative = dice.flip();
        const int exponent = dice.between(r.low, r.normal + (inputs ? -1 : 1));
        draft_.put_number(dice, f, at, exponent, bits, negative);
      }
    } else {
      const bool negative = dice.flip();
      const int exponent = inputs ? dice.between(of_a.low, of_a.normal) : dice.between(low, normal);
      draft_.put_product(dice, p, exponent, bits, negative);
    }
  }
  if (draft_.c() < 0 || dice.below(4) == 0) return;
  const bool negative = dice.flip();
  const int exponent = dice.between(low, normal - 1);
  draft_.put_number(dice, draft_.c(), 0, exponent, 64, negative);
}

void Proposer::overflow(Dice& dice) {
  const int top = subject_.to != nullptr ? unit::exponents_of(*subject_.to).top - 1
                                         : draft_.reach(draft_.c()).high;
  constexpr int kBeyond = 3;
  const bool negative = dice.flip();
  const int bits = draft_.operand_bits();
  if (draft_.row().arithmetic == Arithmetic::quotient) {
    const int exponent = dice.between(top, top + kBeyond);
    return draft_.put_quotient(dice, exponent, bits, negative);
  }
  if (draft_.row().arithmetic == Arithmetic::root) {
    const int exponent = dice.between(2 * top, 2 * (top + kBeyond));
    return draft_.put_number(dice, draft_.a(), 0, exponent, bits, false);
  }
  if (draft_.b() < 0) {
    const int beyond = dice.flip() ? top + kBeyond : draft_.reach(draft_.a()).high;
    const int exponent = dice.between(top, beyond);
    return draft_.put_number(dice, draft_.a(), 0, exponent, bits, negative);
  }
  if (draft_.row().arithmetic != Arithmetic::products) {
    for (const int f : {draft_.a(), draft_.b()}) {
      const int exponent = dice.between(top - 1, top);
      draft_.put_number(dice, f, 0, exponent, bits,
                        negative != (f == draft_.b() && draft_.row().negates_last));
    }
    return;
  }
  // A few products reach the top, by themselves or with c; the others are random.
  if (draft_.products() > 1 && dice.flip()) random_products(dice);
  const std::int64_t large = 1 + dice.below(std::min<std::int64_t>(draft_.products(), 4));
  const bool all = draft_.products() > 1 && dice.flip();
  for (std::int64_t n = 0; n < (all ? draft_.products() : large); ++n) {
    const std::int64_t p = all ? n : dice.below(draft_.products());
    const int exponent = dice.between(top - kBeyond, top + kBeyond);
    draft_.put_product(dice, p, exponent, bits, negative);
  }
  if (draft_.c() < 0 || dice.below(4) == 0) return;
  const bool of_c = negative != draft_.row().negates_last;
  if (dice.flip()) {
    const int exponent = dice.between(top - 1, top);
    return draft_.put_number(dice, draft_.c(), 0, exponent, 64, of_c);
  }
  const int width = dice.between(0, draft_.field(draft_.c()).bits - 2);
  const std::uint64_t codes = dice.bits(width);
  draft_.put_largest(draft_.c(), codes, of_c);
}

Value Proposer::halfway(Dice& dice, const Value& near) const {
  const Format& to = *subject_.to;
  const bool negative = near.negative && to.is_signed;
  Value size = near;
  size.negative = false;
  std::uint64_t magnitude = encode(to, size, {.mode = RoundingMode::rtz}, Overflow::saturate).code;
  // A few codes away, or as many as the significand counts.
  const int far = dice.between(0, std::max(to.mantissa_bits, 2));
  magnitude = std::clamp<std::uint64_t>(magnitude + dice.bits(far), 0, to.largest_code() - 1);
  const Value down = decode(to, magnitude), up = decode(to, magnitude + 1);
  if (up.kind != Class::finite || (down.kind != Class::finite && down.kind != Class::zero))
    return {};
  const int unit = std::min(up.exponent, down.kind == Class::zero ? up.exponent : down.exponent);
  if (up.exponent - unit > 60 || down.exponent - unit > 60) return {};
  const std::uint64_t low =
      down.kind == Class::zero ? 0 : down.significand << (down.exponent - unit);
  const std::uint64_t sum = low + (up.significand << (up.exponent - unit));
  return {Class::finite, negative, false, unit - 1, sum};
}

Value Proposer::difference(const Value& x, const Value& y) {
  unit::Kulisch rest(unit::join({x.exponent, x.exponent + 64}, {y.exponent, y.exponent + 64}), 2);
  rest.add(x);
  rest.add(-y);
  return rest.sum();
}

bool Proposer::has_neighbours() const {
  return subject_.to != nullptr && subject_.to->kind != Kind::codebook &&
         subject_.to->kind != Kind::sign;
}

void Proposer::put_tie(Dice& dice, Value tie) {
  if (tie.kind != Class::finite) return;
  const int zeros = std::countr_zero(tie.significand);
  tie.significand >>= zeros;
  tie.exponent += zeros;
  const int room = draft_.operand_bits() - static_cast<int>(std::bit_width(tie.significand));
  const ExponentReach& a = draft_.reach(draft_.a());
  switch (draft_.row().arithmetic) {
    case Arithmetic::quotient: {
      if (room < 1) return;
      const ExponentReach& b = draft_.reach(draft_.b());
      const int size = unit::leading_exponent(tie);
      const int bits = dice.between(1, room);
      const int of_b =
          dice.between(std::max(b.normal, a.normal - size), std::min(b.high, a.high - 1 - size));
      const bool negative = dice.flip();
      draft_.put_number(dice, draft_.b(), 0, of_b, bits, negative);
      const Value divisor = decode(*subject_.b, draft_.code(draft_.b()));
      if (divisor.kind == Class::finite) draft_.put(draft_.a(), 0, product(tie, divisor));
      return;
    }
    case Arithmetic::root:
      tie.negative = false;
      return draft_.put(draft_.a(), 0, product(tie, tie));
    default:
      draft_.put(draft_.a(), 0, tie);
      return draft_.put(draft_.b(), 0, tie);
  }
}

void Proposer::ties(Dice& dice, Classifier& classifier) {
  if (!has_neighbours()) return random(dice);
  if (draft_.row().arithmetic == Arithmetic::number) {
    draft_.put_finite(dice, draft_.a(), 0);
    if (dice.flip()) random(dice);
    const Value near = classifier.exact().of(*records_, i_).value;
    if (near.kind != Class::finite) return;
    return draft_.put(draft_.a(), 0, halfway(dice, near));
  }
  if (draft_.last() < 0 && draft_.row().arithmetic != Arithmetic::products) {
    random(dice);
    if (draft_.row().arithmetic == Arithmetic::quotient && dice.flip() &&
        subject_.to->kind == Kind::floating) {
      // Quotients of normal numbers in one format are ties below its normal numbers alone.
      const int low = unit::exponents_of(*subject_.to).low,
                high = unit::smallest_normal_exponent(*subject_.to);
      const int exponent = dice.between(low, high);
      draft_.put_quotient(dice, exponent, draft_.operand_bits(), false);
    }
    const Value near = classifier.exact().of(*records_, i_).value;
    if (near.kind != Class::finite) return;
    const Value tie = halfway(dice, near);
    return put_tie(dice, tie);
  }
  if (subject_.operation == Operation::mul) {
    // Odd factors whose product has a bit or two more than the result keeps.
    const int kept = subject_.to->mantissa_bits + 1, bits = draft_.operand_bits();
    const int wanted = kept + 1 + static_cast<int>(dice.below(2));
    const int of_a = dice.between(std::max(wanted - bits, 1), std::min(bits, wanted - 1));
    const ExponentReach reach = draft_.product_reach();
    const int exponent =
        dice.between(std::max(reach.low, draft_.reach(find_field(layout_, "out")).low),
                     std::min(reach.high, draft_.reach(find_field(layout_, "out")).high));
    const ExponentReach &ra = draft_.reach(draft_.a()), &rb = draft_.reach(draft_.b());
    const int ea =
        dice.between(std::max(ra.low, exponent - rb.high), std::min(ra.high, exponent - rb.low));
    for (const auto& [f, e, width] :
         {std::tuple(draft_.a(), ea, of_a), {draft_.b(), exponent - ea, wanted - of_a}}) {
      const std::uint64_t odd = std::uint64_t{1} << (width - 1) | dice.bits(width - 1) | 1;
      draft_.put(f, 0, Value{Class::finite, dice.flip(), false, e - width + 1, odd});
    }
    return;
  }
  random_products(dice);
  const Value sum = sum_without_last(classifier);
  if (sum.kind != Class::finite || sum.sticky) return;
  const Value tie = halfway(dice, sum);
  if (tie.kind != Class::finite) return;
  // The last addend is what is missing.
  draft_.put_addend(draft_.last(), difference(tie, sum));
}

/// Addends of one step: large ones, which may cancel, and small ones around the last kept bit.
void Proposer::alignment(Dice& dice) {
  const unit::UnitDescription& u = *subject_.unit->description();
  const int kept = u.alignment.fraction_bits;
  const std::int64_t products = draft_.products();
  const std::int64_t step = u.group != 0 ? u.group : u.k != 0 ? u.k : products;
  const std::int64_t steps = (products + step - 1) / step;
  const std::int64_t first = dice.below(steps) * step, size = std::min(step, products - first);
  const auto place = [&] { return first + dice.below(size); };
  const ExponentReach reach = draft_.product_reach();
  const bool c_is_large = first == 0 && dice.flip();
  const bool c_is_small = first == 0 && !c_is_large && dice.flip();
  // Large enough that the small ones are numbers, too.
  const int large = c_is_large
                        ? dice.between(reach.normal + kept - 2, reach.high + kept)
                        : dice.between(std::min(reach.normal + kept, reach.high), reach.high);
  const bool negative = dice.flip(), pair = dice.below(4) != 0;
  const int bits = dice.flip() ? 1 : draft_.operand_bits();
  if (c_is_large) {
    draft_.put_number(dice, draft_.c(), 0, large, bits, negative);
  } else {
    const std::int64_t p = place();
    draft_.put_product(dice, p, large, bits, negative);
    if (pair && size > 1) {
      const std::int64_t q = first + (p - first + 1 + dice.below(size - 1)) % size;
      draft_.put(draft_.a(), q, draft_.code(draft_.a(), p));
      draft_.put(
          draft_.b(), draft_.partner(q),
          draft_.code(draft_.b(), draft_.partner(p)) ^ draft_.field(draft_.b()).format->sign_bit());
    }
  }
  const int around = large - kept;
  if (c_is_small) {
    const bool minus = dice.flip();
    const int few = dice.between(1, 3);
    const int below = dice.between(0, 2);
    draft_.put_number(dice, draft_.c(), 0, around - below, few, minus);
  }
  for (std::int64_t n = c_is_small ? dice.below(2) : 1 + dice.below(4); n > 0; --n) {
    const std::int64_t p = place();
    if (decode(*subject_.a, draft_.code(draft_.a(), p)).kind != Class::zero) continue;
    const bool minus = dice.flip();
    const int few = dice.between(1, 2);
    const int beside = dice.between(-2, 1);
    draft_.put_product(dice, p, around + beside, few, minus);
  }
}

}  // namespace numemu::oracle
