#include "emu/unit/sparse/choice.hpp"

#include <bit>

namespace numemu::unit {
namespace {

/// 256 choices are 5 KiB.
constexpr int kTableGroup = 8;

}  // namespace

Choice choose(const Pattern& p, std::uint32_t bits) {
  std::uint32_t all = p.pairwise ? ((bits | bits >> 1) & 0x5555u) * 3 : bits;
  Choice choice;
  int count = std::popcount(all);
  choice.count = static_cast<std::uint8_t>(count);
  // all + 1 carries into the lowest free position; of a pair, first the one and then the other.
  for (; count < p.kept; ++count) all |= all + 1;
  choice.filled = static_cast<std::uint16_t>(all ^ bits);
  for (int j = 0; all != 0; ++j, all &= all - 1)
    choice.index[j] = static_cast<std::uint8_t>(std::countr_zero(all));
  return choice;
}

std::vector<Choice> choice_table(const Pattern& p) {
  std::vector<Choice> table;
  if (p.group > kTableGroup) return table;
  for (std::uint32_t bits = 0; bits < 1u << p.group; ++bits) table.push_back(choose(p, bits));
  return table;
}

}  // namespace numemu::unit
