#include "policies/numerics/operands/scaled_side.hpp"

#include <algorithm>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::policies {

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
