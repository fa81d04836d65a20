#include "emu/oracle/recording/data.hpp"

#include <vector>

#include "emu/oracle/recording/data_codes.hpp"
#include "emu/oracle/recording/data_plan.hpp"

namespace numemu::oracle::recording {
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
