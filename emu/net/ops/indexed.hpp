// Elements chosen or written by indices that the network computes.
#pragma once
#include "emu/net/op.hpp"

namespace numemu::net {

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
};

/// y = data at the indices; inputs (data, indices). A view. The gradient of an element chosen twice
/// is the float32 sum in the order of the indices.
class IndexedGather final : public Op {
 public:
  explicit IndexedGather(const IndexedOptions& options) : options_(options) {}
  std::string_view kind() const override { return "indexed_gather"; }
  ResultKind result() const override { return ResultKind::view; }
  std::optional<Use> input_use(std::size_t i) const override {
    return i == 1 ? std::optional(Use::index) : std::nullopt;
  }
  /// Throws Error where the shapes do not fit.
  Shape output_shape(std::span<const Shape> inputs) const override;
  /// Throws Error for an index that is no whole number or outside its axis.
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  IndexedOptions options_;
};

/// y = data, with updates written at the indices (the last one of equal indices stays) or added
/// there in float32 in their order; inputs (data, indices, updates).
class IndexedScatter final : public Op {
 public:
  IndexedScatter(const IndexedOptions& options, bool adds) : options_(options), adds_(adds) {}
  std::string_view kind() const override { return "indexed_scatter"; }
  std::optional<Use> input_use(std::size_t i) const override {
    return i == 1 ? std::optional(Use::index) : std::nullopt;
  }
  /// Throws Error where the shapes do not fit.
  Shape output_shape(std::span<const Shape> inputs) const override;
  /// Throws Error for an index that is no whole number or outside its axis.
  void forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const override;
  void backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                const Tensor& grad_output, std::span<Tensor> grad_inputs,
                std::span<Tensor> grad_parameters, bool want_inputs) const override;

 private:
  IndexedOptions options_;
  bool adds_;
};

}  // namespace numemu::net
