// Elements and rows chosen by number: constant indices, indices that the network computes, tables.
#pragma once
#include <vector>

#include "emu/net/op.hpp"

namespace numemu::net {

/// [.., n, ..] -> [.., index shape.., ..]: position `i` of the new axes is element indices[i] of
/// `axis`. Negative axes and indices count from the end. The gradient of an element chosen twice is
/// the float32 sum in the order of the indices. A view: its elements already passed the hooks.
class Gather final : public Op {
 public:
  /// One new axis.
  Gather(std::int64_t axis, std::vector<std::int64_t> indices);
  /// `index_shape` {} takes one index and drops the axis. Throws Error unless it has as many
  /// elements as there are indices.
  Gather(std::int64_t axis, std::vector<std::int64_t> indices, Shape index_shape);
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t axis_;
  std::vector<std::int64_t> indices_;
  Shape index_shape_;
};

/// What an index names.
enum class Indexing : std::uint8_t {
  rows,      ///< one element of an axis: indices [i..] give or take [.., i.., ..]
  elements,  ///< likewise, but each index for one element: data and indices have the same axes
  tuples     ///< the last axis of the indices has one number for each of the first data axes
};

struct IndexedOptions {
  Indexing indexing = Indexing::elements;
  std::int64_t axis = 0;        ///< of rows and elements; negative ones count from the end
  std::int64_t batch_axes = 0;  ///< of tuples: leading axes that data and indices share
  /// Of rows along the batch: how many of them a sample has, and the axis of the indices on which
  /// samples lie. Then a sample chooses from its own; 0: from all.
  std::int64_t sample_rows = 0, sample_axis = 0;
};

/// y = data at the indices; inputs (data, indices). A view. The gradient of an element chosen twice
/// is the float32 sum in the order of the indices.
class IndexedGather final : public Op {
 public:
  explicit IndexedGather(const IndexedOptions& options)
      : Op({.kind = "indexed_gather",
            .result = ResultKind::view,
            .inputs = {std::nullopt, Use::index}}),
        options_(options) {}
  /// Throws Error where the shapes do not fit.
  Shape output_shape(Shapes inputs) const override;
  /// Throws Error for an index that is no whole number, outside its axis or of another sample.
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  IndexedOptions options_;
};

/// y = data, with updates written at the indices (the last one of equal indices stays) or added
/// there in float32 in their order; inputs (data, indices, updates).
class IndexedScatter final : public Op {
 public:
  IndexedScatter(const IndexedOptions& options, bool adds)
      : Op({.kind = "indexed_scatter", .inputs = {std::nullopt, Use::index}}),
        options_(options),
        adds_(adds) {}
  /// Throws Error where the shapes do not fit.
  Shape output_shape(Shapes inputs) const override;
  /// Throws Error for an index that is no whole number or outside its axis.
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  IndexedOptions options_;
  bool adds_;
};

/// [batch, ...] of whole numbers in [0, count), as floats -> [batch, ..., width], rows of weight
/// [count, width]. A row's gradient is the pairwise float64 sum over its readers, rounded once;
/// the numbers have none (zeros). The result is `vector`: here the rows become an activation.
class Embedding final : public Op {
 public:
  /// Throws Error when a size is not positive or count is beyond 2^24, the whole numbers of
  /// float32.
  Embedding(std::int64_t count, std::int64_t width);
  /// With that table [count, width], without a copy.
  explicit Embedding(Tensor table);
  Shape output_shape(Shapes inputs) const override;
  /// Throws Error naming the layer and the element for a number that is not a row.
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::vector<std::int64_t> row_numbers(std::string_view layer, const Tensor&) const;

  std::int64_t count_, width_;
};

/// y [batch, length, width] = x [batch, length, width] + weight [length, width] in float32 (the
/// learned positions of GPT, Radford et al. 2018). The weight's gradient is the sum over the batch,
/// pairwise in float64, rounded once.
class PositionEmbedding final : public Op {
 public:
  /// Throws Error when a size is not positive.
  PositionEmbedding(std::int64_t length, std::int64_t width);
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t length_, width_;
};

}  // namespace numemu::net
