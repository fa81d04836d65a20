// Products of two ONNX values: Gemm, MatMul, and those whose axes have labels, as Einsum writes
// them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "emu/net/model/onnx/einsum.hpp"
#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// A value in ONNX order with a label for each axis.
struct Labelled {
  OnnxValue value;
  std::vector<int> labels;  ///< no two alike
};

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

std::size_t place(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::ranges::find(labels, label) - labels.begin());
}

Labels labels_of_both(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The labels of `from` that fit.
template <class Fits>
Labels chosen(const Labels& from, const Fits& fits) {
  Labels out;
  std::ranges::copy_if(from, std::back_inserter(out), fits);
  return out;
}

Extent extent_of(const Labelled& a, int label) { return a.value.extents()[place(a.labels, label)]; }

/// The product of extents, one of which may have the batch as a factor.
Extent product(const Labelled& a, const Labels& labels) {
  Extent out{1};
  for (const int label : labels) {
    const Extent extent = extent_of(a, label);
    if (out.per_batch && extent.per_batch) throw Error("expected the batch on one axis");
    out = {out.value * extent.value, out.per_batch || extent.per_batch};
  }
  return out;
}

Labelled transposed(const NodeImport& node, Labelled a, const Labels& order) {
  if (a.labels == order) return a;
  Ints permutation;
  for (const int label : order)
    permutation.push_back(static_cast<std::int64_t>(place(a.labels, label)));
  a.value = node.add<Transpose>({a.value}, false, std::move(permutation));
  a.labels = order;
  return a;
}

/// [rows.., columns] with all of `columns` as one axis, and `rows` as one where `merged`.
OnnxValue as_matrix(const NodeImport& node, const Labelled& a, const Labels& stack,
                    const Labels& rows, const Labels& columns, bool merged) {
  std::vector<Extent> target;
  for (const int label : stack) target.push_back(extent_of(a, label));
  if (merged) {
    target.push_back(product(a, rows));
  } else {
    for (const int label : rows) target.push_back(extent_of(a, label));
  }
  target.push_back(product(a, columns));
  return node.reshape_to(a.value, target);
}

/// Axes of one element that the other operand has more of are dropped: broadcasting repeats them.
void drop_repeated(const NodeImport& node, Labelled& a, const Labelled& b) {
  const std::vector<Extent> own = a.value.extents();
  std::vector<Extent> target;
  Labels kept;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const int label = a.labels[i];
    const bool dropped =
        has(b.labels, label) && own[i] == Extent{1} && extent_of(b, label) != Extent{1};
    if (dropped) continue;
    kept.push_back(label);
    target.push_back(own[i]);
  }
  if (kept.size() == own.size()) return;
  if (a.value.is_constant()) {
    auto smaller = std::make_shared<OnnxConstant>(*a.value.constant);
    smaller->dims.clear();
    for (const Extent& extent : target) smaller->dims.push_back(extent.value);
    a.value.constant = std::move(smaller);
  } else {
    if (target.empty()) throw Error("expected an axis that is not broadcast");
    a.value = node.reshape_to(a.value, target);
  }
  a.labels = std::move(kept);
}

/// A constant's elements as a matrix [rows, columns].
Tensor matrix_of(const NodeImport& node, const Labelled& a, const Labels& rows,
                 const Labels& columns) {
  const ConstantRef with_elements = held(a.value.constant);
  const OnnxConstant& constant = *with_elements;
  node.hold(2 * static_cast<std::int64_t>(constant.elements.size()));
  const Shape strides = strides_of(constant.dims);
  Shape dims, steps;
  for (const int label : labels_of_both(rows, columns)) {
    dims.push_back(constant.dims[place(a.labels, label)]);
    steps.push_back(strides[place(a.labels, label)]);
  }
  Tensor out = picked(constant, dims, steps).tensor();
  const std::int64_t count = product(a, rows).value;
  out.shape = {count, out.size() / std::max<std::int64_t>(count, 1)};
  return out;
}

/// The sum of a's elements over the labels that `out` lacks, its axes in the order of `out`.
Labelled rearranged(const NodeImport& node, Labelled a, const Labels& out) {
  const Labels summed = chosen(a.labels, [&](int label) { return !has(out, label); });
  if (!summed.empty()) {
    a.value = node.to_plain(a.value);
    Ints axes;
    for (const int label : summed) {
      axes.push_back(static_cast<std::int64_t>(place(a.labels, label)));
      refuse_batch(a.value, axes.back(), "a sum over");
    }
    a.value = node.add<Reduce>({a.value}, false, "reduce_sum", axes, false);
    a.labels = chosen(a.labels, [&](int label) { return has(out, label); });
  }
  if (a.labels.size() != out.size()) throw Error("expected labels of the result among the inputs'");
  return a.labels == out ? a : transposed(node, std::move(a), out);
}

/// The sum of the products of elements with equal labels over those that `out` lacks: a linear
/// layer where one operand is constant and shares no other label, else a stacked product. Extents
/// of 1 are broadcast. `input` is the node's input that b is. Throws Error for extents that do not
/// fit and for a sum over the batch.
Labelled contracted(const NodeImport& node, Labelled a, Labelled b, const Labels& out,
                    std::size_t input = 1) {
  if (a.value.is_constant() && !b.value.is_constant()) {
    std::swap(a, b);
    input = 0;
  }
  const std::string name = node.layer_name(input);
  if (input == 0) node.importer().note_swapped(name);
  a.value = node.to_plain(a.value);
  if (!b.value.is_constant()) b.value = node.to_plain(b.value);
  for (const int label : a.labels) {
    if (!has(b.labels, label)) continue;
    const Extent one = extent_of(a, label), other = extent_of(b, label);
    if (one != other && one != Extent{1} && other != Extent{1})
      throw Error(
          fmt::format("expected axes of the same extent, found {} and {}", one.value, other.value));
  }
  drop_repeated(node, a, b);
  drop_repeated(node, b, a);
  const auto lonely = [&](const Labels& other) {
    return [&](int label) { return has(out, label) || has(other, label); };
  };
  a = rearranged(node, a, chosen(a.labels, lonely(b.labels)));
  if (!std::ranges::all_of(b.labels, lonely(a.labels)))
    b = rearranged(node, b, chosen(b.labels, lonely(a.labels)));

  const auto in_b = [&](int label) { return has(b.labels, label); };
  const Labels summed =
      chosen(a.labels, [&](int label) { return in_b(label) && !has(out, label); });
  Labels stack = chosen(out, [&](int label) { return has(a.labels, label) && in_b(label); });
  Labels left = chosen(a.labels, [&](int label) { return !in_b(label); });
  Labels right = chosen(b.labels, [&](int label) { return !has(a.labels, label); });
  for (const int label : summed)
    refuse_batch(a.value, static_cast<std::int64_t>(place(a.labels, label)), "a sum over");
  std::vector<Extent> target;  // of the result: stack, left, right
  for (const int label : labels_of_both(stack, left)) target.push_back(extent_of(a, label));
  for (const int label : right) target.push_back(extent_of(b, label));
  Labelled y{{}, labels_of_both(labels_of_both(stack, left), right)};

  const Labelled rows = transposed(node, a, labels_of_both(labels_of_both(stack, left), summed));
  if (b.value.is_constant() && stack.empty()) {
    Tensor weight = matrix_of(node, b, right, summed);
    auto op = std::make_unique<Linear>(weight.dim(1), weight.dim(0), false);
    set_parameter(*op, 0, std::move(weight));
    // A linear layer needs an axis before its features.
    const OnnxValue x = as_matrix(node, rows, {}, left, summed, left.empty());
    y.value = node.add(name, std::move(op), {x}, false);
  } else {
    b.value = node.to_plain(b.value);
    // A right operand that lies as [k, n] is multiplied as it is.
    const Labels as_it_is = labels_of_both(labels_of_both(stack, summed), right);
    const bool turned = b.labels != as_it_is;
    const Labelled columns =
        turned ? transposed(node, b, labels_of_both(labels_of_both(stack, right), summed)) : b;
    const OnnxValue left_matrix = as_matrix(node, rows, stack, left, summed, true);
    std::vector<Extent> shape;
    for (const int label : stack) shape.push_back(extent_of(columns, label));
    shape.push_back(product(columns, turned ? right : summed));
    shape.push_back(product(columns, turned ? summed : right));
    const OnnxValue right_matrix = node.reshape_to(columns.value, shape);
    y.value = node.add(name, std::make_unique<MatMul>(MatMulOptions{.transpose_b = turned}),
                       {left_matrix, right_matrix}, false);
  }
  if (target.empty() && !node.one_sample()) target.push_back({1});  // a number
  y.value = node.reshape_to(y.value, target);
  return rearranged(node, std::move(y), out);
}

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
OnnxValue linear(const NodeImport& node, const OnnxValue& x, Tensor out_in, const Tensor* bias,
                 std::size_t input = 1) {
  auto op = std::make_unique<Linear>(std::move(out_in), bias != nullptr);
  if (bias != nullptr) set_parameter(*op, 1, *bias);
  return node.add(node.layer_name(input), std::move(op), {x}, false);
}

void scale(Tensor& tensor, float factor) {
  if (factor == 1) return;
  for (float& v : tensor.data) v *= factor;
}

/// A factor other than 1, rounded once.
OnnxValue times(const NodeImport& node, const OnnxValue& x, float factor) {
  return factor == 1 ? x : node.binary("multiply", x, factor);
}

/// Any of the matrices may be computed, and the left one turned.
OnnxValues gemm_of_values(const NodeImport& node) {
  enum { kRow, kDepth, kColumn };
  const auto matrix = [&](std::size_t index, const char* turns, int first, int second) {
    const OnnxValue& value = node.input(index);
    if (value.rank() != 2)
      throw Error(fmt::format("expected input {} to have 2 axes, found {}", index, value.rank()));
    std::vector<int> labels{first, second};
    if (node->integer_or(turns, 0) != 0) std::swap(labels[0], labels[1]);
    return Labelled{value, labels};
  };
  OnnxValue y = contracted(node, matrix(0, "transA", kRow, kDepth),
                           matrix(1, "transB", kDepth, kColumn), {kRow, kColumn})
                    .value;
  y = times(node, y, node->number_or("alpha", 1));
  if (!node.has_input(2)) return {y};
  return {node.binary("add", y, times(node, node.plain(2), node->number_or("beta", 1)))};
}

OnnxValues gemm(const NodeImport& node) {
  const bool row = !node.has_input(2) || node.input(2).is_constant();
  if (node->integer_or("transA", 0) != 0 || !node.input(1).is_constant() ||
      node.input(0).is_constant() || !row)
    return gemm_of_values(node);
  const OnnxValue x = node.plain();
  Tensor w = node.weights(1, 2);
  if (node->integer_or("transB", 0) == 0) w = transposed(w);
  // Factors go into the constants, rounded once; exporters write 1.
  scale(w, node->number_or("alpha", 1));
  if (!node.has_input(2)) return {linear(node, x, std::move(w), nullptr)};
  Tensor bias = node.tensor(2);
  if (!bias.empty() && bias.size() != 1 && bias.shape.back() != bias.size())
    return gemm_of_values(node);
  scale(bias, node->number_or("beta", 1));
  if (bias.size() == 1 && w.dim(0) != 1) {
    const float value = bias.data[0];
    bias = Tensor({w.dim(0)}, value);
  }
  return {linear(node, x, std::move(w), &bias)};
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

/// Any of the two may be computed; both are inputs of the node.
OnnxValues matmul_of(const NodeImport& node, const OnnxValue& a, const OnnxValue& b) {
  if (stackable(a, b)) {
    const OnnxValue left = node.to_plain(a);
    const OnnxValue right = node.to_plain(node.as_graph(b, node->inputs[1]));
    return {node.add<MatMul>({left, right}, false)};
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
  return {contracted(node, {a, of_a}, {b, of_b}, out).value};
}

OnnxValues matmul(const NodeImport& node) {
  const OnnxValue &a = node.input(0), &b = node.input(1);
  if (!has_weight(a, b)) return matmul_of(node, a, b);
  const OnnxValue x = node.to_plain(a);
  Tensor out_in = transposed(node.weights(1, 2));
  return {linear(node, x, std::move(out_in), nullptr)};
}

}  // namespace

OnnxValue integer_matmul(const NodeImport& node, std::size_t zero, std::size_t weight,
                         std::size_t weight_zero) {
  if (has_weight(node.input(0), node.input(weight))) {
    const OnnxValue x = node.to_plain(without_zero_point(node, zero));
    Tensor w = transposed(node.weights(weight, 2));
    const std::vector<float> zeros = weight_zero_points(node, weight_zero, w.dim(0));
    for (std::size_t i = 0; i < w.data.size(); ++i)
      w.data[i] -= zeros[i / static_cast<std::size_t>(w.dim(1))];
    return as_whole(linear(node, x, std::move(w), nullptr, weight));
  }
  const OnnxValue a = without_zero_point(node, zero),
                  b = without_zero_point(node, weight_zero, weight);
  return as_whole(matmul_of(node, a, b).at(0));
}

namespace {

OnnxValues matmul_integer(const NodeImport& node) { return {integer_matmul(node, 2, 1, 3)}; }

/// Codes of `bits` bits from the low end of each byte on.
std::int64_t code_at(const Tensor& bytes, std::int64_t row, std::int64_t row_bytes, std::int64_t i,
                     std::int64_t bits) {
  const std::int64_t per = 8 / bits;
  const auto byte =
      static_cast<std::int64_t>(bytes.data[static_cast<std::size_t>(row * row_bytes + i / per)]);
  return byte >> bits * (i % per) & ((1 << bits) - 1);
}

/// The block whose scale and zero point each index of the depth has: its own, or what g_idx says of
/// it (GPTQ's act order), where padding up to whole blocks may follow.
Ints groups_of_depth(const NodeImport& node, std::int64_t depth, std::int64_t block) {
  const std::int64_t blocks = (depth + block - 1) / block;
  Ints group(static_cast<std::size_t>(depth));
  for (std::int64_t k = 0; k < depth; ++k) group[static_cast<std::size_t>(k)] = k / block;
  if (!node.has_input(4)) return group;
  const OnnxConstant& order = node.constant(4);
  if (!is_integer(order.type) || (order.size() != depth && order.size() != blocks * block))
    throw Error(fmt::format("expected g_idx to be {} integers, found {} of {}", depth,
                            to_string(order.dims), to_string(order.type)));
  const Tensor given = order.tensor();
  for (std::size_t k = 0; k < group.size(); ++k) {
    const float b = given.data[k];
    if (!(b >= 0) || b >= static_cast<float>(blocks))
      throw Error(fmt::format("expected g_idx within 0..{}, found {} at {}", blocks - 1, b, k));
    group[k] = static_cast<std::int64_t>(b);
  }
  return group;
}

/// com.microsoft.MatMulNBits: x times the transposed [N, K] weight whose codes are bytes
/// [N, blocks, bytes of a block], with a scale for each block and a zero point in codes (each row
/// on whole bytes) or in floats.
OnnxValues matmul_n_bits(const NodeImport& node) {
  const std::int64_t depth = node->integer_or("K", 0), outputs = node->integer_or("N", 0),
                     bits = node->integer_or("bits", 4), block = node->integer_or("block_size", 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (depth < 1 || depth > kMost || outputs < 1 || outputs > kMost)
    throw Error(fmt::format("expected K and N of 1..2^31, found {} and {}", depth, outputs));
  if (bits != 2 && bits != 4 && bits != 8)
    throw Error(fmt::format("expected codes of 2, 4 or 8 bits, found {}", bits));
  if (block < 16 || block > kMost || (block & (block - 1)) != 0)
    throw Error(fmt::format("expected a block_size of a power of two from 16 on, found {}", block));
  if (const std::int64_t level = node->integer_or("accuracy_level", 0); level > 1)
    node.note(fmt::format(
        "MatMulNBits: accuracy_level {} lets ONNX Runtime round activations; numemu multiplies "
        "them in float32, and recipes say what else.",
        level));
  const std::int64_t blocks = (depth + block - 1) / block, row_bytes = blocks * (block * bits / 8),
                     zero_bytes = (blocks * bits + 7) / 8;
  const auto sized = [&](std::size_t index, std::int64_t size, const char* what) {
    Tensor tensor = node.tensor(index);
    if (tensor.size() != size)
      throw Error(fmt::format("expected {} {} for N {} and K {} in blocks of {}, found {}", size,
                              what, outputs, depth, block, to_string(tensor.shape)));
    return tensor;
  };
  const Tensor codes = sized(1, outputs * row_bytes, "bytes of codes"),
               scales = sized(2, outputs * blocks, "scales");
  Tensor zeros;
  const bool has_zeros = node.has_input(3);
  const ConstantRef stored_zeros = has_zeros ? node.input(3).constant : nullptr;
  if (has_zeros && stored_zeros == nullptr) throw Error("expected constant zero points");
  const bool coded = has_zeros && is_integer(stored_zeros->type);
  if (has_zeros)
    zeros = sized(3, outputs * (coded ? zero_bytes : blocks),
                  coded ? "bytes of zero points" : "zero points");
  const Ints group = groups_of_depth(node, depth, block);
  node.hold(outputs * depth);
  Tensor weight({outputs, depth});
  for (std::int64_t n = 0; n < outputs; ++n) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t b = group[static_cast<std::size_t>(k)];
      const float zero = !has_zeros ? static_cast<float>(1 << (bits - 1))
                         : coded    ? static_cast<float>(code_at(zeros, n, zero_bytes, b, bits))
                                    : zeros.data[static_cast<std::size_t>(n * blocks + b)];
      weight.data[static_cast<std::size_t>(n * depth + k)] =
          (static_cast<float>(code_at(codes, n, row_bytes, k, bits)) - zero) *
          scales.data[static_cast<std::size_t>(n * blocks + b)];
    }
  }
  const OnnxValue x = node.plain();
  if (!node.has_input(5)) return {linear(node, x, std::move(weight), nullptr)};
  const Tensor bias = sized(5, outputs, "numbers of the bias");
  return {linear(node, x, std::move(weight), &bias)};
}

/// The tensors of an operator over `size` channels, each of that many numbers.
std::vector<Tensor> per_channel(const NodeImport& node, std::int64_t size, std::size_t count) {
  std::vector<Tensor> out;
  for (std::size_t i = 1; i <= count; ++i) {
    out.push_back(node.weights(i, 1));
    if (out.back().size() != size)
      throw Error(fmt::format("expected input {} to have {} numbers, found {}", i, size,
                              out.back().size()));
  }
  return out;
}

/// By the statistics of the input, and the running ones after it.
OnnxValues batch_norm_of_batch(const NodeImport& node, const OnnxValue& x) {
  Ints axes = every_axis(x, "statistics over");
  axes.pop_back();
  const auto vector = [&](std::size_t index) { return node.value(index); };
  const OnnxValue mean = node.reduce("reduce_mean", x, axes, false);
  const OnnxValue centred = node.binary("subtract", x, mean);
  const OnnxValue variance =
      node.reduce("reduce_mean", node.binary("multiply", centred, centred), axes, false);
  const OnnxValue deviation =
      node.unary("sqrt", node.binary("add", variance, node->number_or("epsilon", 1e-5f)));
  const OnnxValue y = node.binary(
      "add", node.binary("multiply", node.binary("divide", centred, deviation), vector(1)),
      vector(2));
  const float momentum = node->number_or("momentum", 0.9f);
  const auto running = [&](std::size_t index, const OnnxValue& now) {
    return node.binary("add", node.binary("multiply", vector(index), momentum),
                       node.binary("multiply", now, 1 - momentum));
  };
  return {y, running(3, mean), running(4, variance)};
}

/// In training, too, the running statistics are those of the file; what ONNX would give as outputs
/// 1 and 2 is not there.
OnnxValues batch_norm(const NodeImport& node) {
  OnnxValue x = node.value();
  if (x.rank() != 2) x = node.to_image(x);
  if (node->integer_or("spatial", 1) != 1) throw Error("expected statistics of whole channels");
  if (node.one_sample() && node->integer_or("training_mode", 0) != 0)
    return batch_norm_of_batch(node, x);
  std::vector<Tensor> tensors = per_channel(node, x.shapes[0].back(), 4);
  const Elements& variance = tensors[3].data;
  const auto negative = std::ranges::find_if(variance, [](float v) { return v < 0; });
  if (negative != variance.end())
    throw Error(fmt::format("tensor '{}': element {}: expected a variance of at least 0, found {}",
                            printable(node->inputs[4]), negative - variance.begin(), *negative));
  auto op = std::make_unique<BatchNorm>(
      BatchNormOptions{.channels = x.shapes[0].back(),
                       .epsilon = node->number_or("epsilon", 1e-5f),
                       // ONNX weighs the old statistics.
                       .momentum = 1 - double{node->number_or("momentum", 0.9f)}});
  for (std::size_t i = 0; i < 4; ++i) set_parameter(*op, i, std::move(tensors[i]));
  return {node.add(node.layer_name(1), std::move(op), {x}, x.image)};
}

/// Axes of the ellipsis, counted from its end: -1 is the last one.
Labels ellipsis(std::size_t count) {
  Labels out;
  for (std::size_t i = count; i > 0; --i) out.push_back(-static_cast<int>(i));
  return out;
}

Labels labels_of(const std::string& term, std::size_t ellipsis_axes) {
  Labels labels;
  for (const char c : term) {
    if (c == '.') {
      const Labels axes = ellipsis(ellipsis_axes);
      labels.insert(labels.end(), axes.begin(), axes.end());
    } else if (has(labels, c)) {
      throw Error(fmt::format("'{}' twice in '{}': diagonals are not supported", c, term));
    } else {
      labels.push_back(c);
    }
  }
  return labels;
}

OnnxValues einsum(const NodeImport& node) {
  const EinsumEquation equation = parse_equation(node->text_or("equation", ""));
  if (equation.terms.size() != node->inputs.size() || node->inputs.empty())
    throw Error(fmt::format("expected as many terms of the equation as inputs, {}, found {}",
                            node->inputs.size(), equation.terms.size()));
  std::vector<Labelled> operands;
  std::vector<Labels> terms;
  std::set<int> used;
  std::size_t most = 0;  // axes of an ellipsis
  for (std::size_t i = 0; i < node->inputs.size(); ++i) {
    const OnnxValue& value = node.input(i);
    const std::string& term = equation.terms[i];
    const bool open = term.find('.') != std::string::npos;
    const std::size_t named = term.size() - (open ? 1 : 0);
    if (value.rank() < named || (!open && value.rank() != named))
      throw Error(
          fmt::format("expected input {} to have the axes '{}', found {}", i, term, value.rank()));
    most = std::max(most, value.rank() - named);
    terms.push_back(labels_of(term, value.rank() - named));
    operands.push_back({value, terms.back()});
    used.insert(operands.back().labels.begin(), operands.back().labels.end());
  }
  const Labels out = labels_of(equation.result, most);
  for (const int label : out) {
    if (!used.contains(label)) throw Error("expected labels of the result among the inputs'");
  }
  Labelled y = operands[0];
  if (operands.size() == 1) {
    y.value = node.to_plain(y.value);
    return {rearranged(node, y, out).value};
  }
  for (std::size_t i = 1; i < operands.size(); ++i)
    y = contracted(node, y, operands[i], labels_after(y.labels, terms, i, out), i);
  return {y.value};
}

}  // namespace

const OnnxHandlers& onnx_products_handlers() {
  static const OnnxHandlers kHandlers = {
      {"Einsum", einsum},
      {"Gemm", gemm},
      {"MatMul", matmul},
      {"MatMulInteger", matmul_integer},
      {"com.microsoft.MatMulNBits", matmul_n_bits},
      {"BatchNormalization", batch_norm},
  };
  return kHandlers;
}

}  // namespace numemu::net
