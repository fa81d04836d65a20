// How a block-scaled unit reads lines that are padded to whole blocks.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/unit/gather.hpp"

namespace numemu::policies {

/// Neighbours on a line that have one scale in each operand.
struct LinePiece {
  std::int64_t from, count;
};

/// A side's gather with every line cut into pieces, each padded to a block of the unit. An
/// operand's row then reads a run of whole lines: for each a tap of a convolution, or the one line
/// of a matrix. Pieces are blocks of the source, but for the groups of a convolution that begin or
/// end inside one: both operands are cut wherever a block of either begins.
struct ScaledGather {
  std::int64_t block = 0;                        ///< elements per scale
  std::int64_t length = 0;                       ///< elements of a line: of one group
  std::vector<std::vector<LinePiece>> pieces;    ///< of a line, by group; one group: of all lines
  std::int64_t padded = 0;                       ///< elements of the longest list, in whole blocks
  unit::Gather codes;                            ///< of one matrix of padded lines
  std::vector<std::int32_t> row_line, run_line;  ///< padded line = row_line[r] + run_line[run]

  std::int64_t blocks_of_line() const { return padded / block; }
  std::int64_t depth() const { return static_cast<std::int64_t>(run_line.size()) * padded; }
};

/// Nothing where the rows of the operand do not read whole lines: wgrad of a convolution whose
/// windows are more than single pixels. Throws Error beyond the 2^31 elements a gather addresses.
std::optional<ScaledGather> scaled_gather(const net::Product&, net::Side, std::int64_t block);

}  // namespace numemu::policies
