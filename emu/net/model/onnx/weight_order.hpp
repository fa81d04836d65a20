// Where the elements of a layer's weight lie in the tensors of an ONNX file.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx/file.hpp"
#include "emu/net/op.hpp"

namespace numemu::net {

/// Of a weight [out, ...] of the graph.
struct WeightOrder {
  Shape dims;        ///< of the file's tensor
  Shape scale_dims;  ///< `dims` where the output channel depends on the axis, else 1
  /// The element of the graph's weight that is element i of the file's.
  std::function<std::int64_t(std::int64_t i)> from;
  /// The axis whose neighbours are neighbours in the graph's weight; -1: none.
  std::int64_t depth_axis = -1;
  /// Of each axis of the file's tensor the one of the graph's weight; empty: it is none of those.
  std::vector<std::int64_t> axes = {};

  /// One value for each output channel, as many as `channels` has, in the order of scale_dims.
  std::vector<float> scales(const std::vector<float>& channels) const;
  /// The axis whose indices alone tell `channels` output channels apart; -1 without.
  std::int64_t axis(std::int64_t channels) const;
  /// `dims` with one index of depth_axis for each block.
  Shape block_dims(std::int64_t size) const;
  /// The element of the graph's weight with which each block begins, in the order of block_dims().
  std::vector<std::int64_t> block_starts(std::int64_t size) const;
};

/// Of a matrix [out, in] that the file has so, and of the weight [out, taps.., in / groups] of a
/// convolution, which the file has as [out, in / groups, taps..].
WeightOrder order_of_matrix(std::int64_t out, std::int64_t in);
WeightOrder order_of_conv(const Shape&);
/// Of a matrix [out, in] that the file has as [in, out].
WeightOrder order_of_turned(std::int64_t out, std::int64_t in);

/// The numbers of the graph's weight in the order of the file.
template <class T>
std::vector<T> in_order(const WeightOrder& order, const std::vector<T>& values) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = values[static_cast<std::size_t>(order.from(static_cast<std::int64_t>(i)))];
  return out;
}

/// The input of a product that holds its constant weight, and how.
struct WeightInput {
  std::size_t input = 1;
  WeightOrder order;
};
/// Of Conv, ConvTranspose, Gemm, MatMul, and an Einsum of two operands. `constant`: the number of
/// the node's constant operand; `dims`: its shape, empty where it is not known. Nothing for other
/// nodes, and where the graph's operator has no such weight.
std::optional<WeightInput> weight_input(const OnnxNode&, const Op&, std::size_t constant,
                                        const Shape& dims);

/// Rows of W or R of a recurrent node that are a parameter of the graph's operator.
struct RecurrentBlock {
  std::string product;        ///< ".input", ".recurrent" or ".candidate"
  std::size_t parameter = 0;  ///< of the operator
  WeightOrder order;          ///< dims [1, rows, columns]
};
/// The matrices of a direction as ONNX has them, from the first row on.
struct RecurrentBlocks {
  std::vector<RecurrentBlock> input, recurrent;
};
/// Of an operator that recurrent.cpp made.
RecurrentBlocks recurrent_blocks(const Op&);
/// B of a direction: the biases of W, then those of R, gate by gate as in ONNX.
std::vector<float> recurrent_bias(const Op&);

}  // namespace numemu::net
