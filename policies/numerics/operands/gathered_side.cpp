#include "policies/numerics/operands/gathered_side.hpp"

#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "policies/recipe/unit_operands.hpp"

namespace numemu::policies {

namespace {

constexpr std::int64_t kTile = (std::int64_t{1} << 20) / sizeof(float);

}  // namespace

GatheredSide::GatheredSide(const RoleQuantizer& quantizer, const net::Product& product,
                           net::Side which, const RandomPiece& random, std::int64_t samples,
                           bool scaled)
    : quantizer_(quantizer),
      product_(product),
      which_(which),
      side_(product.side(which)),
      random_(random),
      scaled_(scaled),
      rows_(product.rows(which)),
      at_once_(rows_),
      reader_(side_) {
  const std::int64_t matrix = side_.source->size() / side_.stack.count();
  for (std::int64_t d = 0; d < product.k; ++d) {
    const std::int32_t from = side_.gather->depth[d];
    if (!spans_.empty() && from == spans_.back().from + spans_.back().count) {
      ++spans_.back().count;
    } else {
      spans_.push_back({from, d, 1});
    }
  }
  if (quantizer.policy().block->tensor_scale) {
    // Shares of one matrix; where samples have matrices of their own, those are their tensors.
    if (side_.stack.outer == 1 && rows_ % samples == 0) at_once_ = rows_ / samples;
  } else if (rows_ * product.k > matrix) {
    at_once_ = std::clamp<std::int64_t>(kTile / std::max<std::int64_t>(1, product.k), 1, rows_);
  }
}

void GatheredSide::gather(std::int64_t matrix, std::int64_t begin, std::int64_t end) {
  const unit::Gather& from = *side_.gather;
  const auto* source = reinterpret_cast<const float*>(reader_.at(matrix));
  if (!from.padding.identity()) {
    if (padded_matrix_ != matrix) {
      padded_.resize(static_cast<std::size_t>(from.padding.padded_size()));
      unit::pad(from.padding, source, padded_.data(), 0.0f);
      padded_matrix_ = matrix;
    }
    source = padded_.data();
  }
  const std::int64_t k = product_.k;
  x_.resize(static_cast<std::size_t>((end - begin) * k));
  net::for_each_row(end - begin, k, [&](std::int64_t r) {
    const float* const line = source + from.row[begin + r];
    float* const to = x_.data() + r * k;
    for (const Span& span : spans_) std::copy_n(line + span.from, span.count, to + span.to);
  });
}

OperandRows GatheredSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  const std::int64_t matrix = side_.stack.count() == 1 ? 0 : b, k = product_.k;
  const std::int64_t block = quantizer_.policy().block->size;
  const std::int64_t per_row = scaled_ ? (k + block - 1) / block : 0;
  const auto ready = [&]() -> OperandRows {
    if (scaled_)
      return {{quantizer_.policy().block->element, codes_.data(), &gather_}, scale_codes_.data()};
    return {{&float32(), y_.data(), &gather_}, nullptr};
  };
  if (matrix == matrix_ && begin == begin_) return ready();
  gather(matrix, begin, end);
  const std::int64_t first = matrix * rows_ + begin, n = (end - begin) * k;
  const RandomPiece random{random_.source, random_.first + first * k};
  const BlockLayout layout = block_layout(*quantizer_.policy().block, {end - begin, k}, 1);
  BlockCounts counts;
  if (scaled_) {
    codes_.resize(static_cast<std::size_t>(n));
    scale_codes_.resize(static_cast<std::size_t>((end - begin) * per_row));
    float tensor_scale = 1;
    counts = quantizer_.quantize(
        layout, x_.data(), random,
        {.codes = codes_.data(), .scales = scale_codes_.data(), .tensor_scale = &tensor_scale},
        nullptr);
    if (first >= counted_) tensor_scales_.push_back(tensor_scale);
  } else {
    y_.resize(static_cast<std::size_t>(n));
    counts = quantizer_.quantize(layout, x_.data(), random, {}, y_.data());
  }
  if (first >= counted_) {
    flags_ += counts.elements;
    counted_ = first + end - begin;
  }
  if (matrix_ < 0 || static_cast<std::int64_t>(gather_.row.size()) != end - begin)
    gather_ = unit::Gather::matrix(end - begin, k);
  matrix_ = matrix;
  begin_ = begin;
  return ready();
}

OperandScales GatheredSide::scales() const {
  if (!scaled_ || !quantizer_.policy().block->tensor_scale || tensor_scales_.empty()) return {};
  if (tensor_scales_.size() == 1) return {OperandScales::Kind::one, tensor_scales_};
  if (which_ == net::Side::b)
    return {OperandScales::Kind::column, tensor_scales_, side_.stack.count()};
  // [matrix, share] to the lines of D.
  const std::int64_t shares = (rows_ + at_once_ - 1) / at_once_;
  OperandScales result;
  result.kind = OperandScales::Kind::line;
  result.values.resize(static_cast<std::size_t>(product_.d_stack.count() * rows_));
  for (std::int64_t b = 0; b < product_.d_stack.count(); ++b) {
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::int64_t share =
          side_.stack.count() == 1 ? r / at_once_ : b * shares + r / at_once_;
      result.values[product_.d_stack.row(b, r, rows_)] = tensor_scales_[share];
    }
  }
  return result;
}

}  // namespace numemu::policies
