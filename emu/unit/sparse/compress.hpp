// Dense N:M operands and their kept elements: checking, compressing, expanding.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/unit/sparse/pattern.hpp"
#include "formats/format.hpp"

namespace numemu::unit {

// Chooses the kept elements of a group, given those that must be kept.

/// The kept positions of a group.
struct Choice {
  std::uint8_t count = 0;               ///< elements that must be kept; pairs count as two
  std::uint16_t filled = 0;             ///< bit i: position i is kept without need, to make them N
  std::uint8_t index[kMostGroup] = {};  ///< what is kept, ascending: N, or `count` if above N
};

/// The elements whose bits are set, whole pairs where pairwise, and the lowest free positions until
/// there are N.
Choice choose(const Pattern&, std::uint32_t bits);

/// Element b is choose(b): for every group where M <= 8, else empty.
std::vector<Choice> choice_table(const Pattern&);

/// A group that keeps too much: columns group * M to group * M + M - 1 of its row.
struct PatternViolation {
  std::int64_t row = 0, group = 0;
  int kept = 0;  ///< elements that are not zeros (or that the mask keeps); pairs count as two
};

/// A row-major operand of rows x depth codes in their container, groups along depth. T is uint8,
/// uint16 or float.
template <class T>
struct DenseOperand {
  const Format* format = nullptr;
  const T* codes = nullptr;
  std::int64_t rows = 0, depth = 0;
  /// rows x depth, not 0 where kept; nullptr: what is not a zero is kept.
  const std::uint8_t* mask = nullptr;
};

/// The first group, in row-major order, of which more than N elements are not zeros (+0, or -0
/// where the format has it); with a mask, of which it keeps more than N. These functions throw
/// Error when depth is not a multiple of M, or the format is stored in another container.
template <class T>
std::optional<PatternViolation> first_violation(const Pattern&, const DenseOperand<T>&);

/// Writes the kept elements of each group in ascending k, and for each its index inside its group:
/// rows x kept_depth() both. A group with fewer than N of them is filled up from its lowest free
/// positions: with the zeros at these positions (-0 stays -0), or with +0 where a mask drops them.
/// Throws Error naming row and group of the first violation, or of a group that a mask leaves short
/// in a format without zero.
template <class T>
void compress(const Pattern&, const DenseOperand<T>&, T* kept, std::uint8_t* index);

/// The inverse: rows x depth codes of the format, +0 where an element was dropped. Throws Error
/// when `index` breaks its rules (check_index) or the format has no zero to put there.
template <class T>
void expand(const Pattern&, const Format&, const T* kept, const std::uint8_t* index,
            std::int64_t rows, std::int64_t depth, T* dense);

}  // namespace numemu::unit
