#include "policies/numerics/operands/scaled_gather.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "formats/error.hpp"
#include "policies/numerics/operands/block_lines.hpp"

namespace numemu::policies {

namespace {

/// An offset of a gather as a place on a line, and the line.
struct Place {
  std::int64_t on_line, line;
};

/// The pieces of a line of `length` elements of every group, the first of which begins where a
/// block does.
std::vector<std::vector<LinePiece>> cut(std::int64_t groups, std::int64_t length,
                                        std::int64_t block) {
  std::vector<std::vector<LinePiece>> pieces(static_cast<std::size_t>(groups));
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t from = 0, next = 0; from < length; from = next) {
      const std::int64_t end_of_group = from + block - (g * length + from) % block;
      const std::int64_t end_of_own = from + block - from % block;
      next = std::min({length, end_of_group, end_of_own});
      pieces[g].push_back({from, next - from});
    }
  }
  return pieces;
}

}  // namespace

std::optional<ScaledGather> scaled_gather(const net::Product& p, net::Side which,
                                          std::int64_t block) {
  const net::ProductSide& side = p.side(which);
  const unit::Gather& from = *side.gather;
  const std::int64_t width = side.stack.width, rows = side.stack.rows(side.source->size());
  const bool across = side.along_rows;
  ScaledGather result;
  result.block = block;
  result.length = across ? rows : width;
  if (result.length == 0) return std::nullopt;
  const bool grouped = groups_share_blocks(p, net::Side::a) || groups_share_blocks(p, net::Side::b);
  result.pieces = cut(grouped ? p.d_stack.count() : 1, result.length, block);
  for (const std::vector<LinePiece>& pieces : result.pieces)
    result.padded = std::max(result.padded, std::ssize(pieces) * block);
  if (across ? !from.padding.identity() : from.padding.channels % width != 0) return std::nullopt;
  const auto place = [&](std::int32_t offset) -> Place {
    if (across) return {offset / width, offset % width};
    return {offset % width, offset / width};
  };
  std::int64_t last_row = 0, last_run = 0;
  for (const std::int32_t offset : from.row) {
    const Place at = place(offset);
    if (at.on_line != 0) return std::nullopt;
    result.row_line.push_back(static_cast<std::int32_t>(at.line));
    last_row = std::max(last_row, at.line);
  }
  const auto depth = static_cast<std::int64_t>(from.depth.size());
  if (depth % result.length != 0) return std::nullopt;
  for (std::int64_t k = 0; k < depth; ++k) {
    const Place at = place(from.depth[k]);
    if (at.on_line != k % result.length) return std::nullopt;
    if (at.on_line == 0) result.run_line.push_back(static_cast<std::int32_t>(at.line));
    if (at.line != result.run_line.back()) return std::nullopt;
    last_run = std::max(last_run, at.line);
  }
  if (across && last_row + last_run >= width) return std::nullopt;

  unit::Padding& padding = result.codes.padding;
  if (across) {
    padding.outer = width;
    padding.channels = result.padded;
  } else {
    padding = from.padding;
    padding.channels = padding.channels / width * result.padded;
  }
  if (padding.padded_size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error("an operand of " + std::to_string(padding.padded_size()) +
                " elements in whole blocks is beyond the 2^31 a gather can address; use a smaller "
                "batch");
  }
  for (const std::int32_t line : result.row_line)
    result.codes.row.push_back(static_cast<std::int32_t>(line * result.padded));
  for (const std::int32_t line : result.run_line) {
    for (std::int64_t i = 0; i < result.padded; ++i)
      result.codes.depth.push_back(static_cast<std::int32_t>(line * result.padded + i));
  }
  return result;
}

}  // namespace numemu::policies
