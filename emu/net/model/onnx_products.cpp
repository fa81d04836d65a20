// ONNX operators with weights or statistics: Gemm, MatMul, norms, tables.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx_contraction.hpp"
#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/transpose.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

Tensor transposed(const Tensor& w) {
  constexpr std::int64_t kTile = 16;  // a cache line on either side
  const std::int64_t rows = w.dim(0), columns = w.dim(1);
  Tensor turned({columns, rows});
  for (std::int64_t top = 0; top < rows; top += kTile) {
    for (std::int64_t left = 0; left < columns; left += kTile) {
      for (std::int64_t j = left; j < std::min(left + kTile, columns); ++j) {
        for (std::int64_t i = top; i < std::min(top + kTile, rows); ++i)
          turned.data[j * rows + i] = w.data[i * columns + j];
      }
    }
  }
  return turned;
}

/// x times a constant matrix [in, out], with a bias where `bias_input` is one vector of `out`.
OnnxValue linear(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x, Tensor out_in,
                 const Tensor* bias) {
  auto op = std::make_unique<Linear>(std::move(out_in), bias != nullptr);
  if (bias != nullptr) set_parameter(*op, 1, *bias);
  return importer.add(importer.layer_name(node, 1), std::move(op), {x}, false);
}

void scale(Tensor& tensor, float factor) {
  if (factor == 1) return;
  for (float& v : tensor.data) v *= factor;
}

/// A factor other than 1, rounded once.
OnnxValue times(OnnxImporter& importer, const OnnxNode& node, const OnnxValue& x, float factor) {
  if (factor == 1) return x;
  return importer.add(importer.node_name(node), std::make_unique<Binary>("multiply"),
                      {x, importer.number(factor)}, false);
}

/// Any of the matrices may be computed, and the left one turned.
Values gemm_of_values(OnnxImporter& importer, const OnnxNode& node) {
  enum { kRow, kDepth, kColumn };
  const auto matrix = [&](std::size_t index, const char* turns, int first, int second) {
    const OnnxValue& value = importer.input(node, index);
    if (value.rank() != 2)
      throw Error(fmt::format("expected input {} to have 2 axes, found {}", index, value.rank()));
    std::vector<int> labels{first, second};
    if (integer_or(node, turns, 0) != 0) std::swap(labels[0], labels[1]);
    return Labelled{value, labels};
  };
  OnnxValue y = contracted(importer, node, matrix(0, "transA", kRow, kDepth),
                           matrix(1, "transB", kDepth, kColumn), {kRow, kColumn})
                    .value;
  y = times(importer, node, y, number_or(node, "alpha", 1));
  if (!importer.has_input(node, 2)) return {y};
  OnnxValue c = importer.to_plain(importer.as_graph(importer.input(node, 2), ""));
  c = times(importer, node, c, number_or(node, "beta", 1));
  return {importer.add(importer.node_name(node), std::make_unique<Binary>("add"), {y, c}, false)};
}

Values gemm(OnnxImporter& importer, const OnnxNode& node) {
  const bool row = !importer.has_input(node, 2) || importer.input(node, 2).is_constant();
  if (integer_or(node, "transA", 0) != 0 || !importer.input(node, 1).is_constant() ||
      importer.input(node, 0).is_constant() || !row)
    return gemm_of_values(importer, node);
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  Tensor w = weights_of(importer, node, 1, 2);
  if (integer_or(node, "transB", 0) == 0) w = transposed(w);
  // Factors go into the constants, rounded once; exporters write 1.
  scale(w, number_or(node, "alpha", 1));
  if (!importer.has_input(node, 2)) return {linear(importer, node, x, std::move(w), nullptr)};
  Tensor bias = importer.tensor(node, 2);
  if (!bias.empty() && bias.size() != 1 && bias.shape.back() != bias.size())
    return gemm_of_values(importer, node);
  scale(bias, number_or(node, "beta", 1));
  if (bias.size() == 1 && w.dim(0) != 1) {
    const float value = bias.data[0];
    bias = Tensor({w.dim(0)}, value);
  }
  return {linear(importer, node, x, std::move(w), &bias)};
}

/// Whether the leading axes are equal, or those of one operand have one element.
bool stackable(const OnnxValue& a, const OnnxValue& b) {
  if (a.rank() < 2 || b.rank() < 2) return false;
  const auto lead = [](const OnnxValue& value) {
    std::vector<Extent> axes = value.extents();
    axes.resize(axes.size() - 2);
    return axes;
  };
  const auto single = [](const std::vector<Extent>& axes) {
    return std::ranges::all_of(axes, [](const Extent& extent) { return extent == Extent{1}; });
  };
  const std::vector<Extent> of_a = lead(a), of_b = lead(b);
  return of_a == of_b || single(of_a) || single(of_b);
}

/// Whether the product is that of a layer: a matrix of weights serves all rows.
bool has_weight(const OnnxValue& a, const OnnxValue& b) {
  return b.is_constant() && b.rank() == 2 && !a.is_constant() && a.rank() > 1;
}

Values matmul(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue &a = importer.input(node, 0), &b = importer.input(node, 1);
  if (has_weight(a, b)) {
    const OnnxValue x = importer.to_plain(a);
    Tensor out_in = transposed(weights_of(importer, node, 1, 2));
    return {linear(importer, node, x, std::move(out_in), nullptr)};
  }
  if (stackable(a, b)) {
    const OnnxValue left = importer.to_plain(importer.as_graph(a, ""));
    const OnnxValue right = importer.to_plain(importer.as_graph(b, node.inputs[1]));
    return {
        importer.add(importer.node_name(node), std::make_unique<MatMul>(), {left, right}, false)};
  }
  // As labels: rows, depth and columns, then the leading axes from the last to the first.
  enum { kRow, kDepth, kColumn, kLeading };
  const std::size_t rank = std::max(a.rank(), b.rank());
  if (a.rank() < 1 || b.rank() < 1) throw Error("expected operands with axes");
  const auto leading = [](std::size_t count) {
    std::vector<int> labels;
    for (std::size_t i = 2; i < count; ++i)
      labels.push_back(kLeading + static_cast<int>(count - 1 - i));
    return labels;
  };
  std::vector<int> of_a = leading(a.rank()), of_b = leading(b.rank()), out = leading(rank);
  if (a.rank() > 1) of_a.push_back(kRow);
  of_a.push_back(kDepth);
  of_b.push_back(kDepth);
  if (b.rank() > 1) of_b.push_back(kColumn);
  if (a.rank() > 1) out.push_back(kRow);
  if (b.rank() > 1) out.push_back(kColumn);
  return {contracted(importer, node, {a, of_a}, {b, of_b}, out).value};
}

/// Integers less their zero points, multiplied in float32: exact up to 2^24.
Values matmul_integer(OnnxImporter& importer, const OnnxNode& node) {
  if (!has_weight(importer.input(node, 0), importer.input(node, 1)))
    throw Error("expected a constant matrix as the second input");
  const OnnxValue x = importer.to_plain(without_zero_point(importer, node, 2));
  Tensor w = transposed(weights_of(importer, node, 1, 2));
  const std::vector<float> zeros = weight_zero_points(importer, node, 3, w.dim(0));
  for (std::size_t i = 0; i < w.data.size(); ++i)
    w.data[i] -= zeros[i / static_cast<std::size_t>(w.dim(1))];
  OnnxValue y = linear(importer, node, x, std::move(w), nullptr);
  y.integer = true;
  return {y};
}

/// The tensors of an operator over `size` channels, each of that many numbers.
std::vector<Tensor> per_channel(OnnxImporter& importer, const OnnxNode& node, std::int64_t size,
                                std::size_t count) {
  std::vector<Tensor> out;
  for (std::size_t i = 1; i <= count; ++i) {
    out.push_back(weights_of(importer, node, i, 1));
    if (out.back().size() != size)
      throw Error(fmt::format("expected input {} to have {} numbers, found {}", i, size,
                              out.back().size()));
  }
  return out;
}

/// In training, too, the running statistics are those of the file; what ONNX would give as outputs
/// 1 and 2 is not there.
Values batch_norm(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.as_graph(importer.input(node, 0), "");
  if (x.rank() != 2) x = importer.to_image(x);
  if (integer_or(node, "spatial", 1) != 1) throw Error("expected statistics of whole channels");
  std::vector<Tensor> tensors = per_channel(importer, node, x.shapes[0].back(), 4);
  const std::vector<float>& variance = tensors[3].data;
  const auto negative = std::ranges::find_if(variance, [](float v) { return v < 0; });
  if (negative != variance.end())
    throw Error(fmt::format("tensor '{}': element {}: expected a variance of at least 0, found {}",
                            printable(node.inputs[4]), negative - variance.begin(), *negative));
  auto op = std::make_unique<BatchNorm>(
      BatchNormOptions{.channels = x.shapes[0].back(),
                       .epsilon = number_or(node, "epsilon", 1e-5f),
                       // ONNX weighs the old statistics.
                       .momentum = 1 - double{number_or(node, "momentum", 0.9f)}});
  for (std::size_t i = 0; i < 4; ++i) set_parameter(*op, i, std::move(tensors[i]));
  return {importer.add(importer.layer_name(node, 1), std::move(op), {x}, x.image)};
}

}  // namespace

const OnnxHandlers& onnx_product_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Gemm", gemm},
      {"MatMul", matmul},
      {"MatMulInteger", matmul_integer},
      {"BatchNormalization", batch_norm},
  };
  return kHandlers;
}

}  // namespace numemu::net
