// Walking the groups of an operand by their bits: which elements are kept, and where they go.
#include "emu/unit/sparse/compress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

#include "emu/unit/sparse/kept_index.hpp"
#include "emu/unit/sparse/nonzero_bits.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

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

namespace {

/// Every byte but 0 keeps.
constexpr ZeroCodes kDropped = {
    .magnitude = 0xff, .first = 0, .count = 1, .code = 0xff, .never = 1};

template <class T>
void require_container(const Format& format) {
  if (container_bytes(format) != sizeof(T))
    throw Error(fmt::format("format {} is stored in {} byte(s): expected an array of these, got {}",
                            format.name, container_bytes(format), sizeof(T)));
}

/// +0 of a format that has one.
template <class T>
T zero_of(const Format& format) {
  const std::uint32_t bits = zero_container(format).value_or(0);
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

/// Calls visit(row, group, number of the group in all rows, choice) in row-major order until it
/// returns false.
template <class T, class Shape, class Visit>
void for_each_group(const Pattern& p, const Shape shape, const DenseOperand<T>& x,
                    const Visit& visit) {
  const ZeroCodes zeros = zero_codes(*x.format);
  const std::vector<Choice> table = choice_table(p);
  std::vector<std::uint64_t> storage(static_cast<std::size_t>(bit_words(x.depth)));
  // Locals, which the stores of `visit` cannot be suspected to change.
  const Choice* const choices = table.empty() ? nullptr : table.data();
  std::uint64_t* const words = storage.data();
  const std::int64_t groups = x.depth / shape.group;
  Choice scratch;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    if (x.mask != nullptr) {
      nonzero_bits(kDropped, x.mask + row * x.depth, x.depth, words);
    } else {
      nonzero_bits(zeros, x.codes + row * x.depth, x.depth, words);
    }
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::uint32_t bits = bits_at(words, g * shape.group, shape.group);
      if (choices == nullptr) scratch = choose(p, bits);
      const Choice& choice = choices == nullptr ? scratch : choices[bits];
      if (!visit(row, g, row * groups + g, choice)) return;
    }
  }
}

template <class T>
void require_operand(const Pattern& p, const DenseOperand<T>& x) {
  require_pattern(p);
  require_whole_groups(p, x.depth);
  require_container<T>(*x.format);
}

std::string place(const Pattern& p, std::int64_t row, std::int64_t group) {
  return fmt::format("row {}, group {} (k {} to {})", row, group, group * p.group,
                     group * p.group + p.group - 1);
}

[[noreturn]] void refuse(const Pattern& p, const PatternViolation& v, bool masked) {
  const char* what = masked       ? "elements are kept by the mask"
                     : p.pairwise ? "elements are in non-zero pairs"
                                  : "elements are not zeros";
  throw Error(fmt::format("{}: {} {}; {} keeps at most {}", place(p, v.row, v.group), v.kept, what,
                          to_string(p), p.kept));
}

/// Kept elements that the mask drops become +0.
template <class T>
void clear_filled(const Pattern& p, const DenseOperand<T>& x, std::int64_t row, std::int64_t group,
                  const Choice& choice, T* kept) {
  if (!x.format->has_zero())
    throw Error(fmt::format("{}: the mask keeps {} elements, and {} has no zero to pad them to {}",
                            place(p, row, group), choice.count, x.format->name, p.kept));
  const T zero = zero_of<T>(*x.format);
  for (int j = 0; j < p.kept; ++j)
    if (choice.filled >> choice.index[j] & 1) kept[j] = zero;
}

}  // namespace

template <class T>
std::optional<PatternViolation> first_violation(const Pattern& p, const DenseOperand<T>& x) {
  require_operand(p, x);
  std::optional<PatternViolation> violation;
  with_shape(p, [&](const auto shape) {
    for_each_group(p, shape, x,
                   [&](std::int64_t row, std::int64_t group, std::int64_t, const Choice& choice) {
                     if (choice.count <= shape.kept) return true;
                     violation = {row, group, choice.count};
                     return false;
                   });
  });
  return violation;
}

template <class T>
void compress(const Pattern& p, const DenseOperand<T>& x, T* kept, std::uint8_t* index) {
  require_operand(p, x);
  with_shape(p, [&p, &x, kept, index](const auto shape) {
    for_each_group(p, shape, x,
                   [&p, &x, kept, index, shape](std::int64_t row, std::int64_t group,
                                                std::int64_t number, const Choice& choice) {
                     if (choice.count > shape.kept)
                       refuse(p, {row, group, choice.count}, x.mask != nullptr);
                     const T* from = x.codes + number * shape.group;
                     T* to = kept + number * shape.kept;
                     for (int j = 0; j < shape.kept; ++j) to[j] = from[choice.index[j]];
                     std::copy_n(choice.index, shape.kept, index + number * shape.kept);
                     if (choice.filled != 0 && x.mask != nullptr)
                       clear_filled(p, x, row, group, choice, to);
                     return true;
                   });
  });
}

template <class T>
void expand(const Pattern& p, const Format& format, const T* kept, const std::uint8_t* index,
            std::int64_t rows, std::int64_t depth, T* dense) {
  require_operand<T>(p, {&format, kept, rows, depth});
  check_index(p, index, rows, depth);
  if (!format.has_zero() && p.kept < p.group)
    throw Error(fmt::format("format {} has no zero to expand {} with", format.name, to_string(p)));
  const T zero = zero_of<T>(format);
  with_shape(p, [=](const auto shape) {
    const std::int64_t groups = rows * (depth / shape.group);
    for (std::int64_t g = 0; g < groups; ++g) {
      const T* from = kept + g * shape.kept;
      const std::uint8_t* of_group = index + g * shape.kept;
      T* to = dense + g * shape.group;
      std::fill_n(to, shape.group, zero);
      for (int j = 0; j < shape.kept; ++j) to[of_group[j]] = from[j];
    }
  });
}

template std::optional<PatternViolation> first_violation(const Pattern&,
                                                         const DenseOperand<std::uint8_t>&);
template std::optional<PatternViolation> first_violation(const Pattern&,
                                                         const DenseOperand<std::uint16_t>&);
template std::optional<PatternViolation> first_violation(const Pattern&,
                                                         const DenseOperand<float>&);
template void compress(const Pattern&, const DenseOperand<std::uint8_t>&, std::uint8_t*,
                       std::uint8_t*);
template void compress(const Pattern&, const DenseOperand<std::uint16_t>&, std::uint16_t*,
                       std::uint8_t*);
template void compress(const Pattern&, const DenseOperand<float>&, float*, std::uint8_t*);
template void expand(const Pattern&, const Format&, const std::uint8_t*, const std::uint8_t*,
                     std::int64_t, std::int64_t, std::uint8_t*);
template void expand(const Pattern&, const Format&, const std::uint16_t*, const std::uint8_t*,
                     std::int64_t, std::int64_t, std::uint16_t*);
template void expand(const Pattern&, const Format&, const float*, const std::uint8_t*, std::int64_t,
                     std::int64_t, float*);

}  // namespace numemu::unit
