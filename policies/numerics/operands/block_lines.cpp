#include "policies/numerics/operands/block_lines.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/containers.hpp"
#include "formats/scaling/quantize_blocks.hpp"

namespace numemu::policies {
namespace {

/// The source's numbers in the order of its lines; `copy` holds them where that is another order.
const float* in_lines(const net::ProductSide& side, const Lines& lines, std::vector<float>& copy) {
  const float* const x = side.source->data.data();
  if (!lines.transposed || lines.across == 1) return x;
  copy.resize(static_cast<std::size_t>(lines.elements()));
  transpose(x, lines.outer, lines.length, lines.across, copy.data());
  return copy.data();
}

/// The share of one sample, and what to call on each: body(sample, lines before it, its layout).
template <class Body>
FlagCounts for_each_sample(const RoleQuantizer& quantizer, const Lines& lines, std::int64_t samples,
                           const Body& body) {
  FlagCounts flags;
  const std::int64_t share = lines.lines / samples;
  const BlockLayout layout = block_layout(*quantizer.policy().block, {share, lines.length}, 1);
  for (std::int64_t s = 0; s < samples; ++s) flags += body(s, s * share, layout).elements;
  return flags;
}

}  // namespace

bool groups_share_blocks(const net::Product& p, net::Side which) {
  const net::ProductSide& side = p.side(which);
  return !side.along_rows && side.stack.inner > 1 &&
         p.side(net::other_side(which)).role == net::Role::weight;
}

Lines::Lines(const net::Product& p, net::Side which) {
  const net::ProductSide& side = p.side(which);
  const net::Stack& stack = side.stack;
  const std::int64_t size = side.source->size(), rows = stack.rows(size);
  transposed = side.along_rows;
  length = transposed                      ? rows
           : groups_share_blocks(p, which) ? stack.inner * stack.width
                                           : stack.width;
  lines = length == 0 ? 0 : size / length;
  if (!transposed) return;
  outer = stack.outer;
  across = stack.inner * stack.width;
}

Lines::Lines(const net::ProductSide& side, std::int64_t depth)
    : lines(depth == 0 ? 0 : side.source->size() / depth), length(depth) {}

bool reads_in_order(const net::Product& p, net::Side which) {
  const net::ProductSide& side = p.side(which);
  const unit::Gather& gather = *side.gather;
  const std::int64_t rows = p.rows(which);
  if (side.along_rows || side.stack.inner != 1 || !gather.padding.identity() ||
      side.source->size() != side.stack.outer * rows * p.k)
    return false;
  for (std::int64_t k = 0; k < p.k; ++k)
    if (gather.depth[k] != k) return false;
  for (std::int64_t r = 0; r < rows; ++r)
    if (gather.row[r] != r * p.k) return false;
  return true;
}

FlagCounts quantize_lines(const RoleQuantizer& quantizer, const net::ProductSide& side,
                          const Lines& lines, const RandomPiece& random, std::int64_t samples,
                          std::vector<float>& y) {
  const float* const x = side.source->data.data();
  // Grown only: filling what a larger tensor needs again with zeros takes as long as a conversion.
  const auto needed = static_cast<std::size_t>(lines.elements());
  if (y.capacity() < needed) std::vector<float>().swap(y);  // not both in memory, nor twice as much
  if (y.size() < needed) y.resize(needed);
  // Samples have tensor scales of their own only where they have matrices of their own.
  return for_each_sample(quantizer, lines, samples,
                         [&](std::int64_t, std::int64_t first_line, const BlockLayout& layout) {
                           const std::int64_t first = first_line * lines.length;
                           const RandomPiece piece{random.source, random.first + first};
                           float* const to = y.data() + first;
                           if (!lines.transposed || lines.across == 1)
                             return quantizer.quantize(layout, x + first, piece, {}, to);
                           return quantizer.quantize_columns(lines.outer / samples, lines.length,
                                                             lines.across, x + first, piece, to);
                         });
}

FlagCounts quantize_lines(const RoleQuantizer& quantizer, const net::ProductSide& side,
                          const Lines& lines, const RandomPiece& random, std::int64_t samples,
                          LineCodes& out) {
  thread_local std::vector<float> x_lines;
  const float* const x = in_lines(side, lines, x_lines);
  const std::int64_t size = quantizer.policy().block->size;
  const std::int64_t per_line =
      (lines.length + size - 1) / size * container_bytes(*quantizer.policy().block->scale);
  out.codes.resize(static_cast<std::size_t>(lines.elements()));
  out.scales.resize(static_cast<std::size_t>(lines.lines * per_line));
  out.tensor_scales.assign(static_cast<std::size_t>(samples), 1.0f);
  return for_each_sample(
      quantizer, lines, samples,
      [&](std::int64_t sample, std::int64_t first_line, const BlockLayout& layout) {
        const std::int64_t first = first_line * lines.length;
        const BlockArrays arrays{.codes = out.codes.data() + first,
                                 .scales = out.scales.data() + first_line * per_line,
                                 .tensor_scale = out.tensor_scales.data() + sample};
        return quantizer.quantize(layout, x + first, {random.source, random.first + first}, arrays,
                                  nullptr);
      });
}

}  // namespace numemu::policies
