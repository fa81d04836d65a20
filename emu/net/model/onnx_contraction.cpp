#include "emu/net/model/onnx_contraction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/transpose.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

std::size_t place(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::ranges::find(labels, label) - labels.begin());
}

Labels joined(Labels a, const Labels& b) {
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

Labelled transposed(OnnxImporter& importer, const OnnxNode& node, Labelled a, const Labels& order) {
  if (a.labels == order) return a;
  std::vector<std::int64_t> permutation;
  for (const int label : order)
    permutation.push_back(static_cast<std::int64_t>(place(a.labels, label)));
  a.value = importer.add(importer.node_name(node),
                         std::make_unique<Transpose>(std::move(permutation)), {a.value}, false);
  a.labels = order;
  return a;
}

/// [rows.., columns] with all of `columns` as one axis, and `rows` as one where `merged`.
OnnxValue as_matrix(OnnxImporter& importer, const OnnxNode& node, const Labelled& a,
                    const Labels& stack, const Labels& rows, const Labels& columns, bool merged) {
  std::vector<Extent> target;
  for (const int label : stack) target.push_back(extent_of(a, label));
  if (merged) {
    target.push_back(product(a, rows));
  } else {
    for (const int label : rows) target.push_back(extent_of(a, label));
  }
  target.push_back(product(a, columns));
  return importer.reshape_to(node, a.value, target);
}

/// Axes of one element that the other operand has more of are dropped: broadcasting repeats them.
void drop_repeated(OnnxImporter& importer, const OnnxNode& node, Labelled& a, const Labelled& b) {
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
    a.value = importer.reshape_to(node, a.value, target);
  }
  a.labels = std::move(kept);
}

/// A constant's elements as a matrix [rows, columns].
Tensor matrix_of(OnnxImporter& importer, const Labelled& a, const Labels& rows,
                 const Labels& columns) {
  const ConstantRef with_elements = held(a.value.constant);
  const OnnxConstant& constant = *with_elements;
  importer.hold(2 * static_cast<std::int64_t>(constant.elements.size()));
  const Shape strides = strides_of(constant.dims);
  Shape dims, steps;
  for (const int label : joined(rows, columns)) {
    dims.push_back(constant.dims[place(a.labels, label)]);
    steps.push_back(strides[place(a.labels, label)]);
  }
  Tensor out = picked(constant, dims, [&](const Shape& at) {
                 std::int64_t from = 0;
                 for (std::size_t i = 0; i < at.size(); ++i) from += at[i] * steps[i];
                 return from;
               }).tensor();
  const std::int64_t count = product(a, rows).value;
  out.shape = {count, out.size() / std::max<std::int64_t>(count, 1)};
  return out;
}

}  // namespace

Labelled rearranged(OnnxImporter& importer, const OnnxNode& node, Labelled a, const Labels& out) {
  const Labels summed = chosen(a.labels, [&](int label) { return !has(out, label); });
  if (!summed.empty()) {
    a.value = importer.to_plain(importer.as_graph(a.value, ""));
    std::vector<std::int64_t> axes;
    for (const int label : summed) {
      axes.push_back(static_cast<std::int64_t>(place(a.labels, label)));
      refuse_batch(a.value, axes.back(), "a sum over");
    }
    a.value = importer.add(importer.node_name(node),
                           std::make_unique<Reduce>("reduce_sum", axes, false), {a.value}, false);
    a.labels = chosen(a.labels, [&](int label) { return has(out, label); });
  }
  if (a.labels.size() != out.size()) throw Error("expected labels of the result among the inputs'");
  return a.labels == out ? a : transposed(importer, node, std::move(a), out);
}

Labelled contracted(OnnxImporter& importer, const OnnxNode& node, Labelled a, Labelled b,
                    const Labels& out, std::size_t input) {
  if (a.value.is_constant() && !b.value.is_constant()) {
    std::swap(a, b);
    input = 0;
  }
  const std::string name = importer.layer_name(node, input);
  a.value = importer.to_plain(importer.as_graph(a.value, ""));
  if (!b.value.is_constant()) b.value = importer.to_plain(b.value);
  for (const int label : a.labels) {
    if (!has(b.labels, label)) continue;
    const Extent one = extent_of(a, label), other = extent_of(b, label);
    if (one != other && one != Extent{1} && other != Extent{1})
      throw Error(
          fmt::format("expected axes of the same extent, found {} and {}", one.value, other.value));
  }
  drop_repeated(importer, node, a, b);
  drop_repeated(importer, node, b, a);
  const auto lonely = [&](const Labels& other) {
    return [&](int label) { return has(out, label) || has(other, label); };
  };
  a = rearranged(importer, node, a, chosen(a.labels, lonely(b.labels)));
  if (!std::ranges::all_of(b.labels, lonely(a.labels)))
    b = rearranged(importer, node, b, chosen(b.labels, lonely(a.labels)));

  const auto in_b = [&](int label) { return has(b.labels, label); };
  const Labels summed =
      chosen(a.labels, [&](int label) { return in_b(label) && !has(out, label); });
  Labels stack = chosen(out, [&](int label) { return has(a.labels, label) && in_b(label); });
  Labels left = chosen(a.labels, [&](int label) { return !in_b(label); });
  Labels right = chosen(b.labels, [&](int label) { return !has(a.labels, label); });
  for (const int label : summed)
    refuse_batch(a.value, static_cast<std::int64_t>(place(a.labels, label)), "a sum over");
  std::vector<Extent> target;  // of the result: stack, left, right
  for (const int label : joined(stack, left)) target.push_back(extent_of(a, label));
  for (const int label : right) target.push_back(extent_of(b, label));
  Labelled y{{}, joined(joined(stack, left), right)};

  const Labelled rows = transposed(importer, node, a, joined(joined(stack, left), summed));
  if (b.value.is_constant() && stack.empty()) {
    Tensor weight = matrix_of(importer, b, right, summed);
    auto op = std::make_unique<Linear>(weight.dim(1), weight.dim(0), false);
    set_parameter(*op, 0, std::move(weight));
    // A linear layer needs an axis before its features.
    const OnnxValue x = as_matrix(importer, node, rows, {}, left, summed, left.empty());
    y.value = importer.add(name, std::move(op), {x}, false);
  } else {
    b.value = importer.to_plain(importer.as_graph(b.value, ""));
    // A right operand that lies as [k, n] is multiplied as it is.
    const Labels as_it_is = joined(joined(stack, summed), right);
    const bool turned = b.labels != as_it_is;
    const Labelled columns =
        turned ? transposed(importer, node, b, joined(joined(stack, right), summed)) : b;
    const OnnxValue left_matrix = as_matrix(importer, node, rows, stack, left, summed, true);
    std::vector<Extent> shape;
    for (const int label : stack) shape.push_back(extent_of(columns, label));
    shape.push_back(product(columns, turned ? right : summed));
    shape.push_back(product(columns, turned ? summed : right));
    const OnnxValue right_matrix = importer.reshape_to(node, columns.value, shape);
    y.value = importer.add(name, std::make_unique<MatMul>(MatMulOptions{.transpose_b = turned}),
                           {left_matrix, right_matrix}, false);
  }
  if (target.empty()) target.push_back({1});  // a number
  y.value = importer.reshape_to(node, y.value, target);
  return rearranged(importer, node, std::move(y), out);
}

}  // namespace numemu::net
