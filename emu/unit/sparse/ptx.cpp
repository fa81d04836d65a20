// Packing indices into 4 bits per group, and reading them back without trust.
#include "emu/unit/sparse/ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"

namespace numemu::unit {
namespace {

/// What a 4-bit value means in one pattern: the kept indices of its group.
struct Nibbles {
  std::array<bool, 16> legal = {};
  std::array<std::array<std::uint8_t, 4>, 16> index = {};
};

/// The 4 bits of a group; `group` holds legal indices. A group of 2 stores both halves of its one
/// element, of 8 the pairs that begin at every other index.
std::uint32_t nibble_of(const auto shape, const std::uint8_t* group) {
  if (shape.group == 2) return group[0] == 0 ? 0b0100u : 0b1110u;
  if (shape.group == 4) return group[0] | static_cast<std::uint32_t>(group[1]) << 2;
  return static_cast<std::uint32_t>(group[0] / 2) | static_cast<std::uint32_t>(group[2] / 2) << 2;
}

/// Calls visit(shape) for the three patterns that have the layout.
template <class Visit>
void with_ptx_shape(const Pattern& p, const Visit& visit) {
  if (p.group == 2) return visit(FixedShape<1, 2>{});
  if (p.group == 4) return visit(FixedShape<2, 4>{});
  visit(FixedShape<4, 8>{});
}

/// The inverse of nibble_of, from the definition: quarters `low` < `high` of the group are kept.
Nibbles nibbles_of(const Pattern& p) {
  Nibbles nibbles;
  for (unsigned low = 0; low < 4; ++low) {
    for (unsigned high = low + 1; high < 4; ++high) {
      if (p.group == 2 && high / 2 != low / 2) continue;  // halves of different elements
      const unsigned code = low | high << 2;
      nibbles.legal[code] = true;
      auto& index = nibbles.index[code];
      if (p.group == 2) {
        index[0] = static_cast<std::uint8_t>(low / 2);
      } else {
        const unsigned run = static_cast<unsigned>(p.group) / 4;
        for (unsigned i = 0; i < run; ++i) {
          index[i] = static_cast<std::uint8_t>(low * run + i);
          index[run + i] = static_cast<std::uint8_t>(high * run + i);
        }
      }
    }
  }
  return nibbles;
}

void require_layout(const Pattern& p, std::int64_t depth) {
  require_pattern(p);
  if (!has_layout(p, MetaLayout::ptx))
    throw Error(
        fmt::format("{} has no ptx metadata: expected 1:2, 2:4 or 4:8.pairwise", to_string(p)));
  require_whole_groups(p, depth);
}

[[noreturn]] void refuse(const Pattern& p, const Nibbles& nibbles, std::int64_t row,
                         std::int64_t group, std::uint32_t nibble) {
  std::string expected;
  for (unsigned code = 0; code < 16; ++code)
    if (nibbles.legal[code]) expected += fmt::format(" 0b{:04b}", code);
  throw Error(fmt::format("ptx metadata row {}, group {}: 0b{:04b}; {} expects one of{}", row,
                          group, nibble, to_string(p), expected));
}

}  // namespace

template <class Word>
void encode_ptx(const Pattern& p, const std::uint8_t* index, std::int64_t rows, std::int64_t depth,
                Word* words) {
  require_layout(p, depth);
  check_index(p, index, rows, depth);
  constexpr std::int64_t kGroups = sizeof(Word) * 2;
  const std::int64_t groups = depth / p.group;
  with_ptx_shape(p, [&](const auto shape) {
    const std::uint8_t* next = index;
    Word* out = words;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t begin = 0; begin < groups; begin += kGroups) {
        const std::int64_t count = std::min(kGroups, groups - begin);
        std::uint32_t word = 0;
        for (std::int64_t g = 0; g < count; ++g, next += shape.kept)
          word |= nibble_of(shape, next) << (4 * g);
        *out++ = static_cast<Word>(word);
      }
    }
  });
}

template <class Word>
void decode_ptx(const Pattern& p, const Word* words, std::int64_t rows, std::int64_t depth,
                std::uint8_t* index) {
  require_layout(p, depth);
  constexpr std::int64_t kGroups = sizeof(Word) * 2;
  const std::int64_t groups = depth / p.group;
  const Nibbles nibbles = nibbles_of(p);
  with_ptx_shape(p, [&](const auto shape) {
    const Word* in = words;
    std::uint8_t* next = index;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t begin = 0; begin < groups; begin += kGroups) {
        const std::int64_t count = std::min(kGroups, groups - begin);
        std::uint32_t word = *in++;
        for (std::int64_t g = 0; g < count; ++g, word >>= 4, next += shape.kept) {
          const std::uint32_t nibble = word & 15;
          if (!nibbles.legal[nibble]) refuse(p, nibbles, row, begin + g, nibble);
          std::copy_n(nibbles.index[nibble].data(), shape.kept, next);
        }
        // A whole uint32 word has been shifted out; of a short one these bits are beyond its
        // groups.
        if (word != 0)
          throw Error(
              fmt::format("ptx metadata row {}, word {}: bits after the last group, {}; "
                          "expected 0",
                          row, begin / kGroups, groups - 1));
      }
    }
  });
}

template void encode_ptx(const Pattern&, const std::uint8_t*, std::int64_t, std::int64_t,
                         std::uint8_t*);
template void encode_ptx(const Pattern&, const std::uint8_t*, std::int64_t, std::int64_t,
                         std::uint32_t*);
template void decode_ptx(const Pattern&, const std::uint8_t*, std::int64_t, std::int64_t,
                         std::uint8_t*);
template void decode_ptx(const Pattern&, const std::uint32_t*, std::int64_t, std::int64_t,
                         std::uint8_t*);

}  // namespace numemu::unit
