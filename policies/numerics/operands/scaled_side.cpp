#include "policies/numerics/operands/scaled_side.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

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

namespace {

/// The code of the scale that a block of nothing but zeros is given: the blocks of a border.
std::uint8_t scale_of_zeros(const RoleQuantizer& quantizer) {
  const std::vector<float> zeros(static_cast<std::size_t>(quantizer.policy().block->size));
  const auto size = static_cast<std::int64_t>(zeros.size());
  std::vector<std::uint8_t> codes(zeros.size());
  std::uint8_t scale = 0;
  quantizer.quantize(block_layout(*quantizer.policy().block, {1, size}, 1), zeros.data(), {},
                     {.codes = codes.data(), .scales = &scale}, nullptr);
  return scale;
}

}  // namespace

ScaledSide::ScaledSide(const RoleQuantizer& quantizer, const net::Product& product, net::Side which,
                       ScaledGather gather, const RandomPiece& random, std::int64_t samples)
    : quantizer_(quantizer),
      product_(product),
      side_(product.side(which)),
      gather_(std::move(gather)),
      rows_(product.rows(which)) {
  const bool tensor_scale = quantizer.policy().block->tensor_scale;
  const Lines lines(product, which);
  flags_ = quantize_lines(quantizer, side_, lines, random, tensor_scale ? samples : 1, lines_);
  stack_ = side_.along_rows ? net::Stack{.outer = side_.stack.count()} : side_.stack;
  lines_each_ = lines.elements() / gather_.length / side_.stack.count();
  if (gather_.padded != gather_.length || gather_.pieces.size() > 1) cut_lines(lines);
  codes_.emplace(stack_, lines_each_, gather_.padded,
                 cut_codes_.empty() ? lines_.codes.data() : cut_codes_.data());
}

void ScaledSide::cut_lines(const Lines& whole) {
  const std::int64_t length = gather_.length, block = gather_.block,
                     each = gather_.blocks_of_line(), groups = std::ssize(gather_.pieces),
                     per_line = (whole.length + block - 1) / block;
  const std::int64_t lines = whole.elements() / length;
  cut_codes_.assign(static_cast<std::size_t>(lines * gather_.padded), 0);
  cut_scales_.assign(static_cast<std::size_t>(lines * each), scale_of_zeros(quantizer_));
  net::for_each_row(lines, gather_.padded, [&](std::int64_t line) {
    const std::int64_t matrix =
        line / (lines_each_ * stack_.inner) * stack_.inner + line % stack_.inner;
    const std::vector<LinePiece>& pieces = gather_.pieces[groups == 1 ? 0 : matrix];
    for (std::int64_t i = 0; i < std::ssize(pieces); ++i) {
      const std::int64_t first = line * length + pieces[i].from;
      std::copy_n(lines_.codes.data() + first, pieces[i].count,
                  cut_codes_.data() + line * gather_.padded + i * block);
      cut_scales_[line * each + i] =
          lines_.scales[first / whole.length * per_line + first % whole.length / block];
    }
  });
}

void ScaledSide::gather_scales(const std::uint8_t* line_scales) {
  const std::int64_t each = gather_.blocks_of_line();
  const unit::Padding& padding = gather_.codes.padding;
  if (!padding.identity()) {
    unit::Padding of_scales = padding;
    of_scales.channels = padding.channels / gather_.padded * each;
    padded_scales_.resize(static_cast<std::size_t>(of_scales.padded_size()));
    unit::pad(of_scales, line_scales, padded_scales_.data(), scale_of_zeros(quantizer_));
    line_scales = padded_scales_.data();
  }
  const auto runs = static_cast<std::int64_t>(gather_.run_line.size());
  scale_table_.resize(static_cast<std::size_t>(rows_ * runs * each));
  net::for_each_row(rows_, runs * each, [&](std::int64_t r) {
    std::uint8_t* to = scale_table_.data() + r * runs * each;
    for (std::int64_t run = 0; run < runs; ++run, to += each)
      std::copy_n(line_scales + (gather_.row_line[r] + gather_.run_line[run]) * each, each, to);
  });
}

OperandRows ScaledSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  const std::int64_t matrix = side_.stack.count() == 1 ? 0 : b;
  if (matrix != matrix_) {
    net::StackReader scales(stack_, lines_each_, gather_.blocks_of_line(),
                            (cut_scales_.empty() ? lines_.scales : cut_scales_).data());
    gather_scales(reinterpret_cast<const std::uint8_t*>(scales.at(matrix)));
    matrix_ = matrix;
  }
  return {{quantizer_.policy().block->element, codes_->at(matrix), &gather_.codes},
          scale_table_.data()};
}

OperandScales ScaledSide::scales() const {
  if (!quantizer_.policy().block->tensor_scale) return {};
  return sample_scales(product_, lines_.tensor_scales);
}

}  // namespace numemu::policies
