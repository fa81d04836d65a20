#include "emu/oracle/proposals.hpp"

#include <algorithm>

#include "emu/oracle/edges.hpp"
#include "emu/unit/operand.hpp"
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
  const bool unscaled = style == Style::near_ties || style == Style::carry ||
                        (style == Style::alignment && scaled_by_exponents(subject_));
  draft_.put_sides(dice, /*scales=*/!unscaled);
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
    case Style::near_ties:
      return near_ties(dice, judge);
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
  if (subject_.operation == Operation::add) {
    const ExponentReach& here = draft_.reach(draft_.a());
    const int size = dice.between(here.low, here.high);
    const bool negative_a = dice.flip();
    draft_.put_number(dice, draft_.a(), 0, size, bits, negative_a);
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

void Proposer::random(Dice& dice) {
  constexpr int kAny = 4, kNear = 4;
  const bool any = dice.below(kAny) == 0;
  if (subject_.operation == Operation::convert) {
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
