#include "emu/oracle/proposals.hpp"

#include <algorithm>
#include <bit>

#include "emu/oracle/edges.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/reference/alignment.hpp"
#include "formats/codec.hpp"

namespace numemu::oracle {
namespace {

constexpr std::int64_t kMostInputs = std::int64_t{1} << 32;

bool is_input(const Field& f) { return !f.result; }

/// Inputs that exhaustive enumerates: metadata has illegal patterns, long lists have too many.
std::int64_t power_or_none(int bits) { return bits <= 32 ? std::int64_t{1} << bits : 0; }

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
    edges_.back() = s.operation == Operation::convert ? conversion_edges(*f.format, *s.to, s.level)
                                                      : edge_codes(*f.format, s.level);
  }
}

void Proposer::propose(Style style, Dice& dice, Judge& judge, Records& records, std::int64_t i) {
  records_ = &records;
  i_ = i;
  draft_.begin(records, i);
  draft_.clear(dice);
  draft_.put_sides(dice, /*scales=*/style != Style::alignment || !scaled_by_exponents(subject_));
  switch (style) {
    case Style::edges:
      return edges(dice);
    case Style::cancel:
      return cancel(dice, judge);
    case Style::subnormal:
      return subnormal(dice);
    case Style::overflow:
      return overflow(dice);
    case Style::ties:
      return ties(dice, judge);
    case Style::alignment:
      return alignment(dice);
    case Style::random:
    case Style::mixed:
    case Style::exhaustive:
      break;
  }
  random(dice);
}

std::int64_t Proposer::inputs() const {
  std::int64_t bits = 0;
  for (const Field& f : layout_) {
    if (!is_input(f)) continue;
    bits += f.count * f.bits;
    if (f.name == "e") return 0;
  }
  return bits <= 32 ? power_or_none(static_cast<int>(bits)) : 0;
}

void Proposer::put_input(std::int64_t n, Records& records, std::int64_t i) {
  draft_.begin(records, i);
  auto rest = static_cast<std::uint64_t>(n);
  // The last input runs fastest.
  for (std::size_t f = layout_.size(); f-- > 0;) {
    const Field& field = layout_[f];
    for (std::int64_t e = field.count; is_input(field) && e-- > 0; rest >>= field.bits)
      draft_.put(static_cast<int>(f), e, rest & ((std::uint64_t{1} << field.bits) - 1));
  }
}

std::int64_t Proposer::edge_combinations() const {
  std::int64_t all = 1;
  for (std::size_t f = 0; f < layout_.size(); ++f) {
    if (!is_input(layout_[f])) continue;
    if (layout_[f].count != 1 || edges_[f].empty()) return 0;
    all *= static_cast<std::int64_t>(edges_[f].size());
    if (all > kMostInputs) return 0;
  }
  return all;
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
  const Reach reach = draft_.product_reach();
  const int spread = kSpreads[dice.below(4)];
  const int centre = std::clamp(dice.between(-kCentre, kCentre), reach.normal, reach.high);
  const int low = std::max(centre - spread, reach.low),
            high = std::min(centre + spread, reach.high);
  const int bits = dice.flip() ? draft_.operand_bits() : dice.between(1, draft_.operand_bits());
  if (subject_.operation == Operation::add) {
    const Reach& here = draft_.reach(draft_.a());
    const int size = dice.between(here.low, here.high);
    draft_.put_number(dice, draft_.a(), 0, size, bits, dice.flip());
    return draft_.put_number(dice, draft_.b(), 0, size - dice.between(0, spread), bits,
                             dice.flip());
  }
  for (std::int64_t p = 0; p < draft_.products(); ++p)
    draft_.put_product(dice, p, dice.between(low, high), bits, dice.flip());
}

void Proposer::random(Dice& dice) {
  constexpr int kAny = 4, kNear = 4;
  const bool any = dice.below(kAny) == 0;
  if (subject_.operation == Operation::convert) {
    const Format& to = *subject_.to;
    if (any || to.kind == Kind::codebook || subject_.a->kind == Kind::codebook)
      return draft_.put_any(dice, draft_.a(), 0);
    const unit::Exponents there = unit::exponents_of(to);
    return draft_.put_number(dice, draft_.a(), 0, dice.between(there.low - kNear, there.top + 1),
                             draft_.operand_bits(), dice.flip());
  }
  if (any) {
    // One operand of any code, special or not; the others are finite.
    const std::int64_t chosen = dice.below(draft_.products());
    for (std::int64_t p = 0; p < draft_.products(); ++p) {
      draft_.put_finite(dice, draft_.a(), p);
      draft_.put_finite(dice, draft_.b(), draft_.partner(p));
    }
    draft_.put_any(dice, dice.flip() ? draft_.a() : draft_.b(), chosen);
    if (draft_.c() >= 0) draft_.put_any(dice, draft_.c(), 0);
    return;
  }
  random_products(dice);
  if (draft_.c() < 0 || dice.below(kAny) == 0) return;
  const Reach products = draft_.product_reach();
  const int low = std::max(products.normal - kNear, -2 * kNear * kNear),
            high = std::min(products.high + kNear, 2 * kNear * kNear);
  draft_.put_number(dice, draft_.c(), 0, dice.between(low, high), 64, dice.flip());
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
    return draft_.put_number(dice, draft_.a(), 0, dice.between(low, top), bits, dice.flip());
  }
  if (subject_.to == nullptr || subject_.to->kind != Kind::floating) return random(dice);
  const int normal = unit::smallest_normal_exponent(*subject_.to);
  const int low = unit::exponents_of(*subject_.to).low - kBeyond;
  const Reach& of_a = draft_.reach(draft_.a());
  const bool inputs = dice.flip();  // subnormal inputs, or a subnormal result
  for (std::int64_t p = 0; p < draft_.products(); ++p) {
    if (subject_.operation == Operation::add || (inputs && dice.flip())) {
      for (const int f : {draft_.a(), draft_.b()}) {
        const Reach& r = draft_.reach(f);
        const std::int64_t at = f == draft_.a() ? p : draft_.partner(p);
        draft_.put_number(dice, f, at, dice.between(r.low, r.normal + (inputs ? -1 : 1)), bits,
                          dice.flip());
      }
    } else {
      draft_.put_product(dice, p,
                         inputs ? dice.between(of_a.low, of_a.normal) : dice.between(low, normal),
                         bits, dice.flip());
    }
  }
  if (draft_.c() >= 0 && dice.below(4) != 0)
    draft_.put_number(dice, draft_.c(), 0, dice.between(low, normal - 1), 64, dice.flip());
}

void Proposer::overflow(Dice& dice) {
  const int top = subject_.to != nullptr ? unit::exponents_of(*subject_.to).top - 1
                                         : draft_.reach(draft_.c()).high;
  constexpr int kBeyond = 3;
  const bool negative = dice.flip();
  const int bits = draft_.operand_bits();
  if (subject_.operation == Operation::convert) {
    const int beyond = dice.flip() ? top + kBeyond : draft_.reach(draft_.a()).high;
    return draft_.put_number(dice, draft_.a(), 0, dice.between(top, beyond), bits, negative);
  }
  if (subject_.operation == Operation::add) {
    for (const int f : {draft_.a(), draft_.b()})
      draft_.put_number(dice, f, 0, dice.between(top - 1, top), bits, negative);
    return;
  }
  // A few products reach the top, by themselves or with c; the others are random.
  if (draft_.products() > 1 && dice.flip()) random_products(dice);
  const std::int64_t large = 1 + dice.below(std::min<std::int64_t>(draft_.products(), 4));
  const bool all = draft_.products() > 1 && dice.flip();
  for (std::int64_t n = 0; n < (all ? draft_.products() : large); ++n) {
    const std::int64_t p = all ? n : dice.below(draft_.products());
    draft_.put_product(dice, p, dice.between(top - kBeyond, top + kBeyond), bits, negative);
  }
  if (draft_.c() < 0 || dice.below(4) == 0) return;
  if (dice.flip())
    return draft_.put_number(dice, draft_.c(), 0, dice.between(top - 1, top), 64, negative);
  draft_.put_largest(draft_.c(), dice.bits(dice.between(0, draft_.field(draft_.c()).bits - 2)),
                     negative);
}

Value Proposer::halfway(Dice& dice, const Value& near) const {
  const Format& to = *subject_.to;
  const std::uint64_t sign = to.sign_bit();
  std::uint64_t code = encode(to, near, {.mode = RoundingMode::rtz}, Overflow::saturate).code;
  const bool negative = to.kind != Kind::integer && (code & sign) != 0;
  std::uint64_t magnitude = negative ? code & ~sign : code;
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

void Proposer::ties(Dice& dice, Judge& judge) {
  if (subject_.to == nullptr || subject_.to->kind == Kind::codebook ||
      subject_.to->kind == Kind::sign)
    return random(dice);
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
    const Reach reach = draft_.product_reach();
    const int exponent =
        dice.between(std::max(reach.low, draft_.reach(find_field(layout_, "out")).low),
                     std::min(reach.high, draft_.reach(find_field(layout_, "out")).high));
    const Reach &ra = draft_.reach(draft_.a()), &rb = draft_.reach(draft_.b());
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
  unit::Kulisch rest(
      unit::join({tie.exponent, tie.exponent + 64}, {sum.exponent, sum.exponent + 64}), 2);
  rest.add(tie);
  Value negated = sum;
  negated.negative = !negated.negative;
  rest.add(negated);
  draft_.put(draft_.last(), 0, rest.sum());
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
  const Reach reach = draft_.product_reach();
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
  if (c_is_small)
    draft_.put_number(dice, draft_.c(), 0, around - dice.between(0, 2), dice.between(1, 3),
                      dice.flip());
  for (std::int64_t n = c_is_small ? dice.below(2) : 1 + dice.below(4); n > 0; --n) {
    const std::int64_t p = place();
    if (decode(*subject_.a, draft_.code(draft_.a(), p)).kind != Class::zero) continue;
    draft_.put_product(dice, p, around + dice.between(-2, 1), dice.between(1, 2), dice.flip());
  }
}

}  // namespace numemu::oracle
