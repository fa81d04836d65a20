#include "policies/numerics/operands/sliced_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/profile.hpp"
#include "emu/unit/unit.hpp"
#include "formats/error.hpp"
#include "policies/numerics/operands/im2col_operand.hpp"
#include "policies/numerics/operands/operand_scales.hpp"
#include "policies/numerics/operands/weight_tiles.hpp"

namespace numemu::policies {
namespace {

/// Whether row r of the operand is line r of its matrix in the source, or column r.
bool rows_in_order(const net::ProductSide& side) {
  const std::int64_t width = side.stack.width, rows = side.stack.rows(side.source->size());
  const std::vector<std::int32_t>& row = side.gather->row;
  bool ordered = std::ssize(row) == (side.along_rows ? width : rows);
  for (std::int64_t r = 0; ordered && r < std::ssize(row); ++r)
    ordered = row[static_cast<std::size_t>(r)] == (side.along_rows ? r : r * width);
  return ordered;
}

}  // namespace

BlockSlices::BlockSlices(const RoleQuantizer& quantizer, const net::Product& given, net::Side which,
                         const RandomPiece& random)
    : format_(quantizer.policy().block->element), block_(quantizer.policy().block->size) {
  const bool tiles = quantizer.policy().granularity == Granularity::tile;
  std::optional<Im2colOperand> copied;
  // A window's depth runs over taps: blocks and tiles are those of the matrix that a kernel reads.
  net::Product p = given;
  net::ProductSide& side = p.side(which);
  if (!reads_whole_lines(p, side) || !rows_in_order(side) ||
      (tiles && WeightTiles(side.source->shape, block_).taps != 1))
    side = copied.emplace(given, which).side();
  stack_ = side.stack;
  transposed_ = side.along_rows;
  rows_ = side.stack.rows(side.source->size());
  if (tiles) {
    read_tiles(quantizer, side, random);
    return;
  }
  LineCodes lines;
  const Lines whole(p, which);
  length_ = p.k;
  if (whole.length != length_ && length_ % block_ != 0) {
    throw Error(fmt::format(
        "layer {}, {}: groups of {} channels begin inside blocks of {}, which have one product "
        "each: expected a unit that takes float32",
        p.layer, net::to_string(p.kind), length_, block_));
  }
  flags_ = quantize_lines(quantizer, side, whole, random, 1, lines);
  line_length_ = whole.length;
  per_line_ = (line_length_ + block_ - 1) / block_;
  codes_ = std::move(lines.codes);
  scales_.resize(lines.scales.size() / sizeof(float));
  std::memcpy(scales_.data(), lines.scales.data(), lines.scales.size());
}

void BlockSlices::read_tiles(const RoleQuantizer& quantizer, const net::ProductSide& side,
                             const RandomPiece& random) {
  const net::Tensor& weight = *side.source;
  const WeightTiles t(weight.shape, block_);
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  flags_ = quantize_tiles(quantizer, weight, random, codes, scales);
  // [outputs, inputs], or turned.
  const std::int64_t lines = transposed_ ? t.inputs : t.outputs;
  length_ = line_length_ = transposed_ ? t.outputs : t.inputs;
  per_line_ = (length_ + block_ - 1) / block_;
  const std::int64_t across = (t.inputs + block_ - 1) / block_;
  codes_.resize(codes.size());
  scales_.resize(static_cast<std::size_t>(lines * per_line_));
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t k = 0; k < length_; ++k)
      codes_[line * length_ + k] = codes[transposed_ ? k * t.inputs + line : line * t.inputs + k];
    for (std::int64_t s = 0; s < per_line_; ++s)
      scales_[line * per_line_ + s] =
          scales[transposed_ ? s * across + line / block_ : line / block_ * across + s];
  }
}

std::int64_t BlockSlices::line(std::int64_t b, std::int64_t r) const {
  const std::int64_t matrix = stack_.count() == 1 ? 0 : b;
  return transposed_ ? matrix * stack_.width + r : stack_.row(matrix, r, rows_);
}

const std::uint8_t* BlockSlices::codes(std::int64_t b, std::int64_t r) const {
  return codes_.data() + line(b, r) * length_;
}

float BlockSlices::scale(std::int64_t b, std::int64_t r, std::int64_t slice) const {
  const std::int64_t first = line(b, r) * length_ + slice * block_;
  return scales_[static_cast<std::size_t>(first / line_length_ * per_line_ +
                                          first % line_length_ / block_)];
}

void multiply_slices(const unit::Unit& unit, const net::Product& p, const BlockSlices& a,
                     const BlockSlices& b, const net::ProductRandom& random) {
  net::require_stacks(p);
  if (a.block() != b.block()) {
    throw Error(fmt::format(
        "layer {}, {}: unit {} reads codes: expected blocks of one size, found {} and {}", p.layer,
        net::to_string(p.kind), unit.row().name, a.block(), b.block()));
  }
  const std::int64_t block = a.block();
  std::vector<std::uint8_t> left(static_cast<std::size_t>(p.m * block)),
      right(static_cast<std::size_t>(p.n * block));
  std::vector<float> sums(static_cast<std::size_t>(p.m * p.n)), of_b(static_cast<std::size_t>(p.n));
  std::uint32_t number = 0;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    for (std::int64_t first = 0, slice = 0; first < p.k; first += block, ++slice) {
      const std::int64_t width = std::min(block, p.k - first);
      for (std::int64_t r = 0; r < p.m; ++r)
        std::copy_n(a.codes(i, r) + first, width, left.data() + r * width);
      for (std::int64_t c = 0; c < p.n; ++c) {
        std::copy_n(b.codes(i, c) + first, width, right.data() + c * width);
        of_b[c] = b.scale(i, c, slice);
      }
      const unit::Gather gather_a = unit::Gather::matrix(p.m, width),
                         gather_b = unit::Gather::matrix(p.n, width);
      const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                 static_cast<double>(p.m * p.n) * static_cast<double>(width));
      unit.multiply({.m = p.m,
                     .n = p.n,
                     .k = width,
                     .a = {&a.format(), left.data(), &gather_a},
                     .b = {&b.format(), right.data(), &gather_b},
                     .d = sums.data(),
                     .seed = random.seed,
                     .tensor = random.tensor + number++});
      net::for_each_row(p.m, p.n, [&](std::int64_t r) {
        const float of_a = a.scale(i, r, slice);
        float* const d = p.d + p.d_stack.row(i, r, p.m) * p.n;
        for (std::int64_t c = 0; c < p.n; ++c)
          d[c] =
              net::neutral(std::fma(of_a * of_b[c], sums[r * p.n + c], slice == 0 ? 0.0f : d[c]));
      });
    }
  }
}

}  // namespace numemu::policies
