// Proposals whose results matter: sums that cancel, tiny and large results, ties, last kept bits.
// Cold: a negligible share of any run (docs/build.md).
#include <algorithm>
#include <bit>
#include <tuple>

#include "emu/oracle/proposals.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

namespace {

/// How far from a tie, as powers of two of half a unit in the last place, where operands reach it.
constexpr int kNear = 20, kNearest = 44;

Value power(int exponent, bool negative) { return {Class::finite, negative, false, exponent, 1}; }

std::uint64_t ones(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

int Proposer::half_unit(Dice& dice, int room) const {
  const ExponentReach there =
      draft_.reach(find_field(layout_, subject_.operation == Operation::unit ? "d" : "out"));
  const ExponentReach factors = subject_.operation == Operation::convert ? draft_.reach(draft_.a())
                                : subject_.operation == Operation::add   ? draft_.reach(draft_.b())
                                                                         : draft_.product_reach();
  const int above = subject_.to->mantissa_bits + 1;
  const bool alone = draft_.last() < 0;  // then the result is the number or the product itself
  const int low = std::max(alone ? factors.low - above : factors.low + room, there.normal - above),
            high = std::min(alone ? factors.high - above : factors.high, there.high - above - 1);
  return dice.between(low, high);
}

void Proposer::put_partner(std::int64_t p, const Value& product) {
  Value a = decode(*subject_.a, draft_.code(draft_.a(), p));
  if (a.kind != Class::finite) return;
  const bool negative = a.negative != product.negative;
  a.negative = false;
  Value b = exact_quotient(product, a);
  b.negative = negative;
  draft_.put(draft_.b(), draft_.partner(p), b);
}

/// The side of the tie on which rounding to the tie first, then to even, goes wrong.
void Proposer::near_ties(Dice& dice, Judge& judge) {
  if (!has_neighbours()) return random(dice);
  if (subject_.operation == Operation::convert) {
    ties(dice, judge);
    const std::uint64_t tie = draft_.code(draft_.a());
    const bool next = dice.flip();
    if (next ? tie < subject_.a->last_code() : tie > 0)
      draft_.put(draft_.a(), 0, next ? tie + 1 : tie - 1);
    return;
  }
  const ExponentReach reach =
      subject_.operation == Operation::add ? draft_.reach(draft_.b()) : draft_.product_reach();
  const int span = std::max(reach.high - reach.low, 1);
  const int near = dice.between(std::min(kNear, span), std::min(kNearest, span));
  const int shift = subject_.unit != nullptr ? subject_.unit->description()->scaling.shift : 0;
  const int half = half_unit(dice, near);
  const int kept = subject_.to->mantissa_bits;
  const std::uint64_t fraction = dice.bits(kept);
  const bool negative = dice.flip() && subject_.to->is_signed;
  const Value tie{Class::finite, negative, false, half,
                  (std::uint64_t{1} << kept | fraction) << 1 | 1};
  const Value beside = power(half - near, negative == ((fraction & 1) == 0));
  const int bits = draft_.operand_bits();
  if (subject_.operation == Operation::mul) {
    const bool sign = dice.flip();
    const int of_a = dice.between(draft_.reach(draft_.a()).normal, draft_.reach(draft_.a()).high);
    draft_.put_number(dice, draft_.a(), 0, of_a, bits, sign);
    return put_partner(0, tie);
  }
  // The first addend is the tie, or a neighbour; the others are what is missing.
  const int first = subject_.operation == Operation::add ? draft_.a() : draft_.c();
  draft_.put(first, 0, tie);
  const Field& field = draft_.field(first);
  if (field.format == nullptr) return;
  Value rest = difference(tie, decode(*field.format, draft_.code(first)));
  if (subject_.operation == Operation::add) {
    // As near to half a unit as one number can be.
    const int step = rest.kind == Class::zero ? near : std::min(near, bits - 1);
    return draft_.put(draft_.b(), 0, difference(rest, power(half - step, !beside.negative)));
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
  if (subject_.operation == Operation::convert) {
    const int more = bits - kept;
    if (more <= 0) return;
    const std::uint64_t rest = dice.bits(more) | 1;
    return draft_.put(
        draft_.a(), 0,
        Value{Class::finite, negative, false, half + 1 - more, ones(kept) << more | rest});
  }
  const bool sign = dice.flip();
  if (subject_.operation == Operation::mul) {
    const int of_a = dice.between(draft_.reach(draft_.a()).normal, draft_.reach(draft_.a()).high);
    draft_.put_number(dice, draft_.a(), 0, of_a, bits, sign);
    return put_partner(0, Value{Class::finite, negative, false, half, ones(kept + 1)});
  }
  constexpr int kBelow = 3;  // of half a unit
  const int size = half - static_cast<int>(dice.below(kBelow));
  if (subject_.operation == Operation::add) {
    draft_.put(draft_.a(), 0, below);
    return draft_.put_number(dice, draft_.b(), 0, size, bits, negative);
  }
  draft_.put(draft_.c(), 0, below);
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

Value Proposer::sum_without_last(Judge& judge) {
  draft_.put(draft_.last(), 0, Value{});
  return judge.exact().of(*records_, i_).value;
}

void Proposer::cancel(Dice& dice, Judge& judge) {
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
  Value sum = sum_without_last(judge);
  sum.negative = !sum.negative;
  draft_.put(draft_.last(), 0, sum);
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
  if (subject_.operation == Operation::convert) {
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
  for (std::int64_t p = 0; p < draft_.products(); ++p) {
    if (subject_.operation == Operation::add || (inputs && dice.flip())) {
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
  if (subject_.operation == Operation::convert) {
    const int beyond = dice.flip() ? top + kBeyond : draft_.reach(draft_.a()).high;
    const int exponent = dice.between(top, beyond);
    return draft_.put_number(dice, draft_.a(), 0, exponent, bits, negative);
  }
  if (subject_.operation == Operation::add) {
    for (const int f : {draft_.a(), draft_.b()}) {
      const int exponent = dice.between(top - 1, top);
      draft_.put_number(dice, f, 0, exponent, bits, negative);
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
  if (dice.flip()) {
    const int exponent = dice.between(top - 1, top);
    return draft_.put_number(dice, draft_.c(), 0, exponent, 64, negative);
  }
  const int width = dice.between(0, draft_.field(draft_.c()).bits - 2);
  const std::uint64_t codes = dice.bits(width);
  draft_.put_largest(draft_.c(), codes, negative);
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

void Proposer::ties(Dice& dice, Judge& judge) {
  if (!has_neighbours()) return random(dice);
  if (subject_.operation == Operation::convert) {
    draft_.put_finite(dice, draft_.a(), 0);
    if (dice.flip()) random(dice);
    const Value near = judge.exact().of(*records_, i_).value;
    if (near.kind != Class::finite) return;
    return draft_.put(draft_.a(), 0, halfway(dice, near));
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
  const Value sum = sum_without_last(judge);
  if (sum.kind != Class::finite || sum.sticky) return;
  const Value tie = halfway(dice, sum);
  if (tie.kind != Class::finite) return;
  // The last addend is what is missing.
  draft_.put(draft_.last(), 0, difference(tie, sum));
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
