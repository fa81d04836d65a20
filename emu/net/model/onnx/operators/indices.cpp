// ONNX operators that choose, order and write elements by index.
#include <fmt/format.h>

#include <algorithm>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/lookup.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// How many elements of that axis each sample has; 0 where they are not as many for each.
std::int64_t rows_of_sample(const OnnxValue& value, std::int64_t axis) {
  const std::int64_t rows = value.extent(axis) / kProbeBatches[0];
  const bool proportional = rows * kProbeBatches[0] == value.extent(axis) &&
                            rows * kProbeBatches[1] == value.extent(axis, 1);
  return proportional ? rows : 0;
}

OnnxValues gather(const NodeImport& node) {
  const OnnxValue &data = node.input(0), &indices = node.input(1);
  const std::int64_t axis = axis_in(node->integer_or("axis", 0), data.rank());
  // From a matrix by whole rows: a table that training changes.
  if (data.is_constant() && data.rank() == 2 && axis == 0 && data.constant->size() > 0) {
    auto table = std::make_unique<Embedding>(node.tensor(0));
    return {node.add(node.layer_name(0), std::move(table), {node.plain(1)}, false)};
  }
  const OnnxValue x = node.to_plain(data);
  if (!indices.is_constant()) {
    const OnnxValue places = node.to_plain(indices);
    // Along the batch computed indices name samples; along another axis every sample would choose
    // from all.
    const bool names_samples = x.has_batch(axis);
    if (x.has_batch() && places.has_batch() != names_samples)
      throw Error("activations chosen by indices of all samples are not supported");
    IndexedOptions options{.indexing = Indexing::rows, .axis = axis};
    if (const std::int64_t rows = names_samples ? rows_of_sample(x, axis) : 0; rows > 0) {
      options.sample_rows = rows;
      while (!places.has_batch(options.sample_axis)) ++options.sample_axis;
    }
    return {node.add<IndexedGather>({x, places}, false, options)};
  }
  refuse_batch(x, axis, "choosing along");
  const OnnxConstant& index = node.constant(1);
  node.hold(static_cast<std::int64_t>(index.elements.size()));  // eight bytes each
  return {node.add<Gather>({x}, false, axis, index.integers(), index.dims)};
}

/// Data, indices and updates in ONNX's order, and how the indices are meant.
struct Indexed {
  OnnxValues operands;
  IndexedOptions options;
};

Indexed indexed_of(const NodeImport& node, std::size_t count, bool tuples) {
  Indexed out;
  for (std::size_t i = 0; i < count; ++i) out.operands.push_back(node.plain(i));
  const OnnxValue& data = out.operands[0];
  if (tuples) {
    out.options = {.indexing = Indexing::tuples, .batch_axes = node->integer_or("batch_dims", 0)};
    // The indices of a batch that the file fixes name its own samples only.
    if (data.has_batch() && !out.operands[1].has_batch())
      throw Error(fmt::format("the indices do not depend on the batch; {}", kDynamicBatch));
    return out;
  }
  out.options = {.axis = axis_in(node->integer_or("axis", 0), data.rank())};
  refuse_batch(data, out.options.axis, "choosing along");
  for (std::size_t i = 1; i < count; ++i) {
    // Indices of the sample of a file whose batch is fixed to one serve all.
    const OnnxValue& operand = out.operands[i];
    if (data.has_batch() && !operand.has_batch() && operand.rank() > 0 && operand.shapes[0][0] == 1)
      out.operands[i] = node.repeated(out.operands[i]);
  }
  return out;
}

template <bool kTuples>
OnnxValues indexed_gather(const NodeImport& node) {
  const Indexed given = indexed_of(node, 2, kTuples);
  return {as_whole(node.add<IndexedGather>(given.operands, false, given.options),
                   given.operands[0].integer)};
}

template <bool kTuples>
OnnxValues indexed_scatter(const NodeImport& node) {
  const std::string_view reduction = node->text_or("reduction", "none");
  if (reduction != "none" && reduction != "add") throw Error("expected reduction 'none' or 'add'");
  const Indexed given = indexed_of(node, 3, kTuples);
  return {
      as_whole(node.add<IndexedScatter>(given.operands, false, given.options, reduction == "add"),
               given.operands[0].integer && given.operands[2].integer)};
}

template <bool kLargest>
OnnxValues arg(const NodeImport& node) {
  OnnxValue x = node.value();
  const bool keep = node->integer_or("keepdims", 1) != 0;
  if (!keep) x = node.to_plain(x);
  const std::int64_t axis = stored_axis(x, node->integer_or("axis", 0));
  refuse_batch(x, axis, "choosing along");
  const TopKOptions options{.axis = axis,
                            .largest = kLargest,
                            .places = true,
                            .last_first = node->integer_or("select_last_index", 0) != 0,
                            .keep = keep};
  return {as_whole(node.add<TopK>({x}, x.image && keep, options))};
}

/// Values and their places, each by a node of its own.
OnnxValues top_k(const NodeImport& node) {
  const OnnxValue x = node.value();
  TopKOptions o{.axis = stored_axis(x, node->integer_or("axis", -1)),
                .k = node->integer_or("k", 1),  // before operator set 10
                .largest = node->integer_or("largest", 1) != 0};
  refuse_batch(x, o.axis, "choosing along");
  if (node.has_input(1)) o.k = node.one_integer(1, "expected one number of elements");
  OnnxValues out;
  for (std::size_t i = 0; i < 2; ++i) {
    o.places = i == 1;
    out.emplace_back();
    if (i >= node->outputs.size() || node->outputs[i].empty()) continue;
    out[i] = node.add<TopK>({x}, x.image, o);
    out[i].integer = x.integer || o.places;
  }
  return out;
}

/// Comparisons with the numbers 0 to depth - 1 and, for indices from the end, with -depth to -1.
OnnxValues one_hot(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const Tensor depths = node.constant(1).tensor();
  const Tensor pair = node.constant(2).tensor();  // off, on
  if (depths.size() != 1 || pair.size() != 2 || !(depths.data[0] >= 1 && depths.data[0] <= 0x1p20f))
    throw Error("expected a depth from 1 to 2^20 and two values");
  const auto depth = static_cast<std::int64_t>(depths.data[0]);
  const std::int64_t axis = axis_in(node->integer_or("axis", -1), x.rank() + 1);
  std::vector<Extent> wide = x.extents();
  wide.insert(wide.begin() + axis, Extent{1});
  const OnnxValue places = node.reshape_to(x, wide);
  const auto found = [&](std::int64_t first) {
    Shape dims(x.rank() + 1 - static_cast<std::size_t>(axis), 1);
    dims[0] = depth;
    node.hold(7 * depth);
    const OnnxValue numbers =
        node.numbers(whole_numbers(dims, [&](std::int64_t i) { return first + i; }));
    return node.binary("equal", places, numbers);
  };
  const OnnxValues both{found(0), found(-depth)};
  const OnnxValues values{node.binary("maximum", both[0], both[1]), node.number(pair.data[1]),
                          node.number(pair.data[0])};
  return {as_whole(node.add<Where>(values, false), node.constant(2).integer)};
}

OnnxValues cumulative_sum(const NodeImport& node) {
  const OnnxValue x = node.value();
  const std::int64_t axis = stored_axis(x, node.one_integer(1, "expected one axis"));
  refuse_batch(x, axis, "sums along");
  return {node.add<CumulativeSum>(
      {x}, x.image,
      CumulativeSumOptions{.axis = axis,
                           .exclusive = node->integer_or("exclusive", 0) != 0,
                           .reverse = node->integer_or("reverse", 0) != 0})};
}

/// The elements of an axis, or of all, where a condition holds.
OnnxValues compress(const NodeImport& node) {
  OnnxValue x = node.plain();
  const Ints holds = node.constant(1).integers();
  std::int64_t axis = 0;
  if (node->find("axis") != nullptr) {
    axis = axis_in(node->integer_or("axis", 0), x.rank());
    refuse_batch(x, axis, "choosing along");
  } else {
    every_axis(x, "choosing along");
    x = node.reshape_to(x, {{element_count(x.shapes[0])}});
  }
  const std::int64_t n = x.extent(axis);
  if (std::ssize(holds) > n) throw Error("expected a condition for each element at most");
  node.hold(2 * n);
  Ints places;
  for (std::int64_t i = 0; i < std::ssize(holds); ++i)
    if (holds[static_cast<std::size_t>(i)] != 0) places.push_back(i);
  return {node.add<Gather>({x}, false, axis, std::move(places))};
}

/// The first steps of each sequence in opposite order.
OnnxValues reverse_sequence(const NodeImport& node) {
  const OnnxValue x = node.plain();
  const Ints lengths = node.constant(1).integers();
  const std::int64_t time = axis_in(node->integer_or("time_axis", 0), x.rank()),
                     batch = axis_in(node->integer_or("batch_axis", 1), x.rank());
  every_axis(x, "sequences of");
  const Shape& dims = x.shapes[0];
  const Shape steps = strides_of(dims);
  const auto t = static_cast<std::size_t>(time), b = static_cast<std::size_t>(batch);
  if (std::ssize(lengths) != dims[b] || time == batch)
    throw Error("expected a length for each sequence");
  node.hold(2 * element_count(dims));  // eight bytes each
  Ints places;
  for (std::int64_t i = 0; i < element_count(dims); ++i) {
    const std::int64_t step = i / steps[t] % dims[t],
                       length = lengths[static_cast<std::size_t>(i / steps[b] % dims[b])];
    if (length < 1 || length > dims[t]) throw Error("expected lengths from 1 to that of the axis");
    places.push_back(step < length ? length - 1 - step : step);
  }
  node.hold(6 * std::ssize(places));
  const OnnxValue chosen = node.numbers(
      whole_numbers(dims, [&](std::int64_t i) { return places[static_cast<std::size_t>(i)]; }));
  return {node.add<IndexedGather>({x, chosen}, false, IndexedOptions{.axis = time})};
}

/// 1 at the first largest element along an axis, else 0.
OnnxValues hardmax(const NodeImport& node) {
  OnnxValue x = node.plain();
  const std::vector<Extent> own = x.extents();
  const bool flattens = node.opset() < 13;
  const std::int64_t axis = axis_in(node->integer_or("axis", flattens ? 1 : -1), x.rank());
  const auto at = static_cast<std::size_t>(axis);
  refuse_batch(x, axis, "the largest of");
  if (flattens && at + 1 < own.size()) x = node.reshape_to(x, joined_from(own, axis));
  const OnnxValue place = node.add<TopK>({x}, false, TopKOptions{.axis = axis, .places = true});
  Shape dims(x.rank() - at, 1);
  dims[0] = x.extent(axis);
  node.hold(2 * dims[0]);  // for the places, then for their numbers
  node.hold(6 * dims[0]);
  const OnnxValue numbers = node.numbers(whole_numbers(dims, [](std::int64_t i) { return i; }));
  return {node.reshape_to(node.binary("equal", place, numbers), own)};
}

}  // namespace

const OnnxHandlers& onnx_indices_handlers() {
  static const OnnxHandlers kHandlers = {
      {"ArgMax", arg<true>},
      {"ArgMin", arg<false>},
      {"Compress", compress},
      {"CumSum", cumulative_sum},
      {"Gather", gather},
      {"GatherElements", indexed_gather<false>},
      {"GatherND", indexed_gather<true>},
      {"Hardmax", hardmax},
      {"OneHot", one_hot},
      {"ReverseSequence", reverse_sequence},
      {"Scatter", indexed_scatter<false>},
      {"ScatterElements", indexed_scatter<false>},
      {"ScatterND", indexed_scatter<true>},
      {"TopK", top_k},
  };
  return kHandlers;
}

}  // namespace numemu::net
