#include "emu/oracle/recording/data.hpp"

#include <algorithm>
#include <vector>

namespace numemu::oracle::recording {

namespace {

std::uint64_t special_integer(Element e, std::uint32_t choice) {
  const std::uint64_t all = low_bits(info(e).bits);
  const std::uint64_t most = info(e).has_sign ? all >> 1 : all;
  const std::uint64_t least = info(e).has_sign ? most + 1 : 0;
  const std::uint64_t kCodes[8] = {least, least, most, most, 0, all, 1, least + 1};
  return kCodes[choice];
}

std::uint64_t special_scale(Element e, std::uint64_t code, std::uint32_t choice) {
  const Parts p(e);
  const std::uint64_t not_a_number = p.fields;
  if (p.specials == Specials::exponent)
    return choice < 3 ? not_a_number : choice < 5 ? p.largest : 0;
  const std::uint64_t sign = p.fields + 1;  // the unit is said to ignore it
  const std::uint64_t kCodes[8] = {not_a_number, not_a_number | sign, p.largest, 0, 1,
                                   code | sign,  code | sign,         sign};
  return kCodes[choice];
}

}  // namespace

Range exponents(const Parts& p, int low_exponent, int high_exponent) {
  const auto field = [&p](int exponent) { return std::clamp(exponent + p.bias, 0, p.top); };
  return {field(low_exponent), field(high_exponent), low_bits(p.mantissa) & ~low_bits(p.dropped)};
}

std::uint64_t near_an_end(const Draw& draw) {
  const auto shift = static_cast<int>(draw.code >> 20 & 31);
  const std::uint64_t distance = (draw.code & 0xfffff) >> std::min(shift, 20);
  return draw.sign ? 0x80000000U + distance : 0x7fffffffU - distance;
}

std::uint64_t special_code(Element e, std::uint64_t code, std::uint32_t word) {
  const std::uint32_t choice = word >> 28 & 7;
  if (is_integer(e)) return special_integer(e, choice);
  if (!info(e).has_sign) return special_scale(e, code, choice);
  const Parts p(e);
  const std::uint64_t payload = code & low_bits(p.mantissa), least = std::uint64_t{1} << p.dropped;
  const std::uint64_t quiet = std::uint64_t{1} << (p.mantissa - 1);
  const std::uint64_t infinity = p.largest + 1, sign = word >> 31 != 0 ? p.sign_bit : 0;
  const std::uint64_t largest = p.largest & ~low_bits(p.dropped);
  const std::uint64_t top_binade =
      p.finite(static_cast<std::uint64_t>(p.top) << p.mantissa | payload);
  std::uint64_t magnitude = 0;
  switch (choice) {
    case 0:
    case 1:
      // The bits of tf32 that the unit drops stay: an infinity, if it does drop them.
      magnitude = p.specials == Specials::ieee      ? infinity | (payload & low_bits(p.dropped))
                  : p.specials == Specials::one_nan ? p.fields
                                                    : largest;
      break;
    case 2:
      magnitude = p.specials == Specials::ieee ? infinity | quiet | payload : top_binade;
      break;
    case 3:
      magnitude = p.specials == Specials::ieee ? infinity | (payload & ~quiet) | least : top_binade;
      break;
    case 4:
      break;
    case 5:
      magnitude = largest;
      break;
    case 6:
      magnitude = top_binade;
      break;
    default:
      magnitude = least;
  }
  return magnitude | sign;
}

namespace {

struct Exponents {
  int low, high;
};

/// Bits of small integers: operands, accumulator.
struct IntegerBits {
  int operand, c;
};
IntegerBits integer_bits(DataKind kind) {
  switch (kind) {
    case DataKind::narrow:
      return {3, 8};
    case DataKind::mixed:
      return {5, 16};
    case DataKind::broad:
      return {8, 24};
    case DataKind::cancelling:
      return {8, 4};
    case DataKind::tiny:
      return {2, 2};
    case DataKind::zeros:
      return {8, 0};
    default:
      return {8, 32};
  }
}

/// Half of a sum of exponents for each factor, as far as the types have it.
void share(const Instruction& i, int sum, Exponents& a, Exponents& b) {
  const Parts pa(i.a), pb(i.b);
  const int most_b = pb.exponent_of(pb.top), least_b = pb.exponent_of(0);
  const int for_a = std::clamp(sum / 2, pa.exponent_of(0), pa.exponent_of(pa.top));
  const int for_b = std::clamp(sum - for_a, least_b, most_b);
  a = {for_a - 2, for_a + 1};
  b = {for_b - 2, for_b + 1};
}

/// What both C and D have (m8n8k4 mixes float16 and float32).
Exponents of_sums(const Instruction& i) {
  const Parts c(i.c), d(i.d);
  return {std::max(c.exponent_of(0), d.exponent_of(0)),
          std::min(c.exponent_of(c.top), d.exponent_of(d.top))};
}

/// Before types cut them: C is the wider, for it takes sums.
struct Spread {
  Exponents a, b, c;
};
Spread spread(const Instruction& i, DataKind kind, std::int64_t turn) {
  const auto [least_c, most_c] = of_sums(i);
  const int far = info(i.a).exponent_bits == 11 ? 60 : 24;
  Spread s{{-4, 4}, {-4, 4}, {-6, 8}};
  switch (kind) {
    case DataKind::narrow:
      s = {{-1, 1}, {-1, 1}, {-2, 4}};
      break;
    case DataKind::broad:
      s = {{-8, 8}, {-8, 8}, {-12, 14}};
      break;
    case DataKind::wide:
      s = {{-far, far}, {-far, far}, {-far - 6, far + 6}};
      break;
    case DataKind::cancelling:
      s.c = {-28, 0};
      break;
    case DataKind::accumulator:
      s.a = s.b = {-6, 2};
      break;
    case DataKind::tiny: {
      const Parts a(i.a), b(i.b);
      const int least_a = a.exponent_of(0), least_b = b.exponent_of(0), half = least_c / 2;
      const Exponents beneath{half - 12, half + 2};
      if (turn % 3 == 0) s = {{least_a - 1, least_a}, {-2, 2}, {least_a - 12, least_a + 2}};
      if (turn % 3 == 1) s = {{-2, 2}, {least_b - 1, least_b}, {least_b - 12, least_b + 2}};
      if (turn % 3 == 2) s = {beneath, beneath, {least_c - 1, least_c}};
      // Beneath every exponent that is said to bound the alignment from below; C is zero.
      if (turn % 6 == 5) s.a.high = s.b.high = half - 4;
      break;
    }
    case DataKind::zeros:
      // A zero that counts as 2^-126 times B raises the alignment of smaller products.
      if (turn % 2 == 1 && info(i.a).exponent_bits >= 8) {
        const int least_a = Parts(i.a).exponent_of(0);
        s.a = {least_a, least_a + 6};
        s.b = {1, 61};
      }
      break;
    case DataKind::specials:
      if (turn % 2 == 1) {
        share(i, most_c, s.a, s.b);
        s.c = {most_c - 3, most_c};
        return s;
      }
      break;
    default:
      break;
  }
  // Sums of a float16 result would overflow most of the time; the kinds below ask for overflow.
  const int highest = (most_c - 5) / 2;
  s.a.high = std::min(s.a.high, highest);
  s.b.high = std::min(s.b.high, highest);
  s.c.high = std::min(s.c.high, most_c - 1);
  return s;
}

Plan scale_plan(const Instruction& i, DataKind kind, std::int64_t turn) {
  const Parts p(i.scale);
  const int half = of_sums(i).low / 2;
  Plan plan;
  switch (kind) {
    case DataKind::narrow:
      plan.range = exponents(p, -1, 1);
      break;
    case DataKind::broad:
      plan.range = exponents(p, -8, 8);
      break;
    case DataKind::wide:
      plan.range = exponents(p, -16, 16);
      break;
    case DataKind::accumulator:
      plan.range = exponents(p, -4, 0);
      break;
    case DataKind::tiny:
      plan.range = turn % 3 == 2 ? exponents(p, half - 12, half + 2) : exponents(p, -2, 2);
      break;
    default:
      plan.range = exponents(p, -4, 4);
  }
  plan.any = kind == DataKind::widest;
  if (kind == DataKind::specials) plan.one_special_of = 8;
  return plan;
}

/// A power of two at least `n`.
int power_above(int n) {
  int power = 1;
  while (power < n) power *= 2;
  return power;
}

Plans integer_plans(DataKind kind) {
  Plans p;
  const IntegerBits bits = integer_bits(kind);
  p.a.bits = p.b.bits = bits.operand;
  p.c.bits = bits.c;
  p.c.at_ends = kind == DataKind::accumulator || kind == DataKind::specials;
  if (kind == DataKind::specials) {
    p.a.one_special_of = p.b.one_special_of = 2;
    p.c.one_special_of = 8;
  }
  return p;
}

Plans floating_plans(const Instruction& i, DataKind kind, std::int64_t turn) {
  const Spread s = spread(i, kind, turn);
  const Parts a(i.a), b(i.b), c(i.c);
  Plans p;
  p.a.range = exponents(a, s.a.low, s.a.high);
  p.b.range = exponents(b, s.b.low, s.b.high);
  p.c.range = exponents(c, s.c.low, s.c.high);
  if (kind == DataKind::tiny && turn % 6 == 5) p.c.range = {0, 0, 0};
  if (kind == DataKind::accumulator) {
    // Two significands below 2, and two of ue4m3 scales below 2.
    const int scaled = i.scale == Element::ue4m3 ? 4 : 2;
    const int above = a.exponent_of(p.a.range.high) + b.exponent_of(p.b.range.high) + scaled;
    p.c.range = exponents(c, above, std::min(above + 14, of_sums(i).high));
  }
  p.a.any = p.b.any = p.c.any = kind == DataKind::widest;
  // By turns, B small enough that no product overflows C.
  const int no_overflow = of_sums(i).high - 5 - a.exponent_of(a.top);
  if (kind == DataKind::widest && turn % 2 == 1 && no_overflow < b.exponent_of(b.top)) {
    p.b.any = false;
    p.b.range = exponents(b, b.exponent_of(0) - 1, no_overflow);
  }
  if (kind <= DataKind::broad && turn % 2 == 1) {
    for (Plan* plan : {&p.a, &p.b}) {
      const Parts& parts = plan == &p.a ? a : b;
      plan->range.mantissa &= ~low_bits(std::max(parts.mantissa - 2, 0));
    }
  }
  // The low bits of tf32, which the unit is said to drop.
  const bool dropped_bits = kind == DataKind::mixed || kind == DataKind::wide ||
                            kind == DataKind::accumulator ||
                            (kind == DataKind::specials && turn % 2 == 1);
  if (dropped_bits) {
    p.a.range.mantissa |= low_bits(a.dropped);
    p.b.range.mantissa |= low_bits(b.dropped);
  }
  if (kind == DataKind::specials) {
    // About one in every dot; where overflow is asked, in every fourth.
    p.a.one_special_of = p.b.one_special_of = power_above(i.kept()) * (turn % 2 == 1 ? 8 : 2);
    p.c.one_special_of = 8;
  }
  return p;
}

}  // namespace

Plans plans(const Instruction& i, DataKind kind, std::int64_t turn) {
  Plans p = is_integer(i.a) ? integer_plans(kind) : floating_plans(i, kind, turn);
  if (i.block != 0) p.scale_a = p.scale_b = scale_plan(i, kind, turn);
  return p;
}

namespace {

/// A tile within the run.
struct At {
  std::uint32_t tensor;
  std::uint64_t seed;
  std::int64_t tile;
};

Words words(const At& at, int draw, int elements, int words_each = 1) {
  return Words(at.seed, at.tensor, draw,
               static_cast<std::uint64_t>(at.tile) * static_cast<std::uint64_t>(elements) *
                   static_cast<std::uint64_t>(words_each));
}

/// The codes of one operand of one tile.
struct Codes {
  Element element;
  std::uint8_t* bytes;
  int lines, length;  ///< rows of A and C, columns of B; codes of one of them
  Parts parts{element};

  int size() const { return lines * length; }
  std::uint8_t* at(int index) const { return bytes + index * parts.bytes; }
  std::uint64_t get(int index) const { return load_code(at(index), parts.bytes); }
  void set(int index, std::uint64_t code) const { store_code(at(index), parts.bytes, code); }

  bool integer() const { return parts.specials == Specials::integer; }
  std::int64_t value(int index) const { return integer_value(parts, get(index)); }
  std::uint64_t opposite(std::uint64_t code) const {
    return integer() ? integer_code(parts, -integer_value(parts, code)) : code ^ parts.sign_bit;
  }
  /// The least signed integer has no opposite.
  std::uint64_t with_an_opposite(std::uint64_t code) const {
    return integer() && parts.has_sign && code == parts.sign_bit ? code + 1 : code;
  }
  /// What is left of a code that becomes zero.
  std::uint64_t sign_of(std::uint64_t code) const { return integer() ? 0 : code & parts.sign_bit; }
};

void draw(const Codes& codes, const Plan& plan, const At& at, Operand operand) {
  const Parts& p = codes.parts;
  const int size = codes.size();
  Words source = words(at, static_cast<int>(operand), size, words_of(p));
  for (int i = 0; i < size; ++i) {
    const Draw d = draw_code(p, source);
    if (codes.integer()) {
      codes.set(i, plan.at_ends     ? near_an_end(d)
                   : plan.bits == 0 ? 0
                                    : small_integer(p, plan.bits, d));
    } else {
      codes.set(i,
                plan.any ? p.finite(d.code & (p.sign_bit | p.fields)) : in_range(p, plan.range, d));
    }
  }
  if (plan.one_special_of == 0) return;
  const auto others = static_cast<std::uint32_t>(plan.one_special_of - 1);
  Words decisions = words(at, kDecisions + static_cast<int>(operand), size);
  for (int i = 0; i < size; ++i) {
    const std::uint32_t word = decisions.next();
    if ((word & others) == 0) codes.set(i, special_code(codes.element, codes.get(i), word));
  }
}

/// PTX ISA, "Sparse matrix storage": two ascending indexes of two bits, the first in the low bits;
/// in 1:2 only 0b0100 (the first) and 0b1110 (the second) are valid.
constexpr std::uint8_t kTwoOfFour[] = {0b0100, 0b1001, 0b1100, 0b1110, 0b1000, 0b1101};
constexpr std::uint8_t kOneOfTwo[] = {0b0100, 0b1110};
constexpr int kOneEvenOneOdd = 4;  // so many words of kTwoOfFour keep one of each parity

void draw_metadata(const Instruction& i, std::uint8_t* metadata, bool one_even_one_odd,
                   const At& at) {
  const bool one = i.sparsity == Sparsity::one_of_two;
  const std::uint64_t choices = one ? 2 : one_even_one_odd ? kOneEvenOneOdd : 6;
  const int size = i.m * i.groups();
  Words source = words(at, static_cast<int>(Operand::metadata), size);
  for (int w = 0; w < size; ++w) {
    const auto choice = source.next() * choices >> 32;
    metadata[w] = one ? kOneOfTwo[choice] : kTwoOfFour[choice];
  }
}

/// Zeros that keep their signs.
void zero_half(const Codes& codes, const At& at, Operand operand) {
  Words decisions = words(at, kDecisions + static_cast<int>(operand), codes.size());
  for (int i = 0; i < codes.size(); ++i)
    if (decisions.next() >> 31 != 0) codes.set(i, codes.sign_of(codes.get(i)));
}
void zero_all(const Codes& codes) {
  for (int i = 0; i < codes.size(); ++i) codes.set(i, codes.sign_of(codes.get(i)));
}

/// A's kept codes 2p and 2p + 1: the second the first or its opposite, in one of four pairs but for
/// the last bit.
void pair_up(const Codes& a, bool opposed, const At& at) {
  const std::uint64_t last_bit = std::uint64_t{1} << a.parts.dropped;
  Words decisions = words(at, kDecisions + static_cast<int>(Operand::a), a.size());
  for (int i = 0; i < a.size(); i += 2) {
    std::uint32_t decision = decisions.next();
    decision |= decisions.next();
    const std::uint64_t first = a.with_an_opposite(a.get(i));
    const std::uint64_t second = opposed ? a.opposite(first) : first;
    a.set(i, first);
    a.set(i + 1, decision >> 31 == 0 ? second ^ last_bit : second);
  }
}

/// B the same over runs of k that hold a kept pair whatever is kept; signs alternate where it is B
/// that brings the opposite.
void repeat(const Codes& b, int run, bool alternate) {
  for (int i = 0; i < b.size(); ++i) {
    if (i % run == 0) {
      b.set(i, b.with_an_opposite(b.get(i)));
    } else {
      b.set(i, alternate ? b.opposite(b.get(i - 1)) : b.get(i - 1));
    }
  }
}

/// Where neither factor has a sign, C cancels the sum.
void cancel_with_c(const Instruction& i, const Codes& a, const Codes& b, const Codes& c,
                   const std::uint8_t* metadata) {
  std::vector<int> place(static_cast<std::size_t>(i.kept()));
  for (int row = 0; row < i.m; ++row) {
    for (int j = 0; j < i.kept(); ++j)
      place[static_cast<std::size_t>(j)] = place_of_kept(i, metadata + row * i.groups(), j);
    for (int column = 0; column < i.n; ++column) {
      std::int64_t sum = c.value(row * i.n + column);
      for (int j = 0; j < i.kept(); ++j)
        sum -= a.value(row * i.kept() + j) *
               b.value(column * i.k + place[static_cast<std::size_t>(j)]);
      c.set(row * i.n + column, integer_code(c.parts, sum));
    }
  }
}

void cancel(const Instruction& i, const Codes& a, const Codes& b, const Codes& c,
            const std::uint8_t* metadata, const At& at) {
  const bool a_opposes = info(i.a).has_sign, b_opposes = !a_opposes && info(i.b).has_sign;
  const bool adjacent = i.sparsity == Sparsity::dense || i.sparsity == Sparsity::pairs_of_four;
  pair_up(a, a_opposes, at);
  repeat(b, adjacent ? 2 : 4, b_opposes);
  if (!a_opposes && !b_opposes) cancel_with_c(i, a, b, c, metadata);
}

/// Sums that leave int32 and return: in two lines of four the first half of the codes is positive
/// and the second negative, in the others the reverse. Without `turns` all are positive.
void order_signs(const Codes& codes, bool turns) {
  if (!codes.parts.has_sign) return;
  for (int i = 0; i < codes.size(); ++i) {
    const int line = i / codes.length;
    const bool second = i % codes.length >= codes.length / 2;
    const bool negative = turns && second != (line / 2 % 2 == 1);
    const std::uint64_t code = codes.with_an_opposite(codes.get(i));
    codes.set(i, (integer_value(codes.parts, code) < 0) != negative ? codes.opposite(code) : code);
  }
}

/// The operands of one tile, as fill() arranges them.
struct Operands {
  Codes a, b, c, scale_a, scale_b;
  std::uint8_t* metadata;
};

Operands operands(Batch& batch, std::size_t tile) {
  const Instruction& i = *batch.instruction;
  const TileBytes bytes = tile_bytes(i);
  return {{i.a, batch.a.data() + tile * bytes.a, i.m, i.kept()},
          {i.b, batch.b.data() + tile * bytes.b, i.n, i.k},
          {i.c, batch.c.data() + tile * bytes.c, i.m, i.n},
          {i.scale, batch.scale_a.data() + tile * bytes.scale_a, i.m, i.scales()},
          {i.scale, batch.scale_b.data() + tile * bytes.scale_b, i.n, i.scales()},
          batch.metadata.data() + tile * bytes.metadata};
}

void fill_tile(const Instruction& i, const Operands& o, const At& at) {
  const DataKind kind = kind_of_tile(at.tile);
  const std::int64_t turn = at.tile / kDataKinds;
  const Plans p = plans(i, kind, turn);
  draw(o.a, p.a, at, Operand::a);
  draw(o.b, p.b, at, Operand::b);
  draw(o.c, p.c, at, Operand::c);
  draw(o.scale_a, p.scale_a, at, Operand::scale_a);
  draw(o.scale_b, p.scale_b, at, Operand::scale_b);
  const bool b_opposes = !info(i.a).has_sign && info(i.b).has_sign;
  draw_metadata(i, o.metadata, kind == DataKind::cancelling && b_opposes, at);

  if (kind == DataKind::cancelling) cancel(i, o.a, o.b, o.c, o.metadata, at);
  if (kind == DataKind::accumulator && is_integer(i.a) && turn % 2 == 1) {
    order_signs(o.a, true);
    order_signs(o.b, !info(i.a).has_sign);
  }
  if (kind == DataKind::zeros) {
    zero_half(o.a, at, Operand::a);
    zero_half(o.b, at, Operand::b);
    zero_all(o.c);
  }
}

}  // namespace

const char* name(DataKind kind) {
  constexpr const char* kNames[] = {"narrow",      "mixed", "broad",  "wide",  "cancelling",
                                    "accumulator", "tiny",  "widest", "zeros", "specials"};
  return kNames[static_cast<int>(kind)];
}

void fill(Batch& batch, std::uint32_t tensor, std::uint64_t seed, std::int64_t first_tile) {
  for (int tile = 0; tile < batch.count; ++tile)
    fill_tile(*batch.instruction, operands(batch, static_cast<std::size_t>(tile)),
              {tensor, seed, first_tile + tile});
}

int place_of_kept(const Instruction& i, const std::uint8_t* metadata, int j) {
  const auto index = [metadata](int group, int which) {
    return metadata[group] >> (2 * which) & 3;
  };
  switch (i.sparsity) {
    case Sparsity::two_of_four:
      return j / 2 * 4 + index(j / 2, j % 2);
    case Sparsity::one_of_two:
      return j * 2 + index(j, 0) / 2;
    case Sparsity::pairs_of_four:
      return j / 4 * 8 + 2 * index(j / 4, j % 4 / 2) + j % 2;
    default:
      return j;
  }
}

}  // namespace numemu::oracle::recording
