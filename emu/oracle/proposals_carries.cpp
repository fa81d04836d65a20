// Proposals that tell roundings apart: numbers beside ties, and carries through every bit.
#include <algorithm>
#include <bit>

#include "emu/oracle/proposals.hpp"
#include "emu/unit/operand.hpp"
#include "formats/codec.hpp"

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

}  // namespace numemu::oracle
