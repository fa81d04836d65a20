// ONNX operators that choose, order and write elements by index.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "emu/net/model/onnx/arithmetic.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;

bool on_batch(const OnnxValue& value, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  return value.shapes[0][at] != value.shapes[1][at];
}

/// How many elements of that axis each sample has; 0 where they are not as many for each.
std::int64_t rows_of_sample(const OnnxValue& value, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t rows = value.shapes[0][at] / kProbeBatches[0];
  const bool proportional = rows * kProbeBatches[0] == value.shapes[0][at] &&
                            rows * kProbeBatches[1] == value.shapes[1][at];
  return proportional ? rows : 0;
}

/// From a matrix by whole rows: a table that training changes.
OnnxValue embedding(OnnxImporter& importer, const OnnxNode& node, Tensor table) {
  return importer.add(importer.layer_name(node, 0), std::make_unique<Embedding>(std::move(table)),
                      {importer.to_plain(importer.input(node, 1))}, false);
}

Values gather(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue &data = importer.input(node, 0), &indices = importer.input(node, 1);
  const std::int64_t axis = axis_in(integer_or(node, "axis", 0), data.rank());
  if (data.is_constant() && data.rank() == 2 && axis == 0 && data.constant->size() > 0)
    return {embedding(importer, node, importer.tensor(node, 0))};
  const OnnxValue x = importer.to_plain(data);
  if (!indices.is_constant()) {
    const OnnxValue places = importer.to_plain(indices);
    // Along the batch computed indices name samples; along another axis every sample would choose
    // from all.
    const bool names_samples = on_batch(x, axis);
    if (x.has_batch() && places.has_batch() != names_samples)
      throw Error("activations chosen by indices of all samples are not supported");
    IndexedOptions options{.indexing = Indexing::rows, .axis = axis};
    if (const std::int64_t rows = names_samples ? rows_of_sample(x, axis) : 0; rows > 0) {
      options.sample_rows = rows;
      while (!on_batch(places, options.sample_axis)) ++options.sample_axis;
    }
    return {importer.add<IndexedGather>(node, {x, places}, false, options)};
  }
  refuse_batch(x, axis, "choosing along");
  const OnnxConstant& index = importer.constant(node, 1);
  importer.hold(static_cast<std::int64_t>(index.elements.size()));  // eight bytes each
  return {importer.add<Gather>(node, {x}, false, axis, index.integers(), index.dims)};
}

/// Data, indices and updates in ONNX's order, and how the indices are meant.
struct Indexed {
  Values operands;
  IndexedOptions options;
};

Indexed indexed_of(OnnxImporter& importer, const OnnxNode& node, std::size_t count, bool tuples) {
  Indexed out;
  for (std::size_t i = 0; i < count; ++i)
    out.operands.push_back(importer.to_plain(importer.input(node, i)));
  const OnnxValue& data = out.operands[0];
  if (tuples) {
    out.options = {.indexing = Indexing::tuples, .batch_axes = integer_or(node, "batch_dims", 0)};
    // The indices of a batch that the file fixes name its own samples only.
    if (data.has_batch() && !out.operands[1].has_batch())
      throw Error(fmt::format("the indices do not depend on the batch; {}", kDynamicBatch));
    return out;
  }
  out.options = {.axis = axis_in(integer_or(node, "axis", 0), data.rank())};
  refuse_batch(data, out.options.axis, "choosing along");
  for (std::size_t i = 1; i < count; ++i) {
    // Indices of the sample of a file whose batch is fixed to one serve all.
    const OnnxValue& operand = out.operands[i];
    if (data.has_batch() && !operand.has_batch() && operand.rank() > 0 && operand.shapes[0][0] == 1)
      out.operands[i] = importer.repeated(node, out.operands[i]);
  }
  return out;
}

template <bool kTuples>
Values indexed_gather(OnnxImporter& importer, const OnnxNode& node) {
  const Indexed given = indexed_of(importer, node, 2, kTuples);
  OnnxValue y = importer.add<IndexedGather>(node, given.operands, false, given.options);
  y.integer = given.operands[0].integer;
  return {y};
}

template <bool kTuples>
Values indexed_scatter(OnnxImporter& importer, const OnnxNode& node) {
  const std::string_view reduction = text_or(node, "reduction", "none");
  if (reduction != "none" && reduction != "add") throw Error("expected reduction 'none' or 'add'");
  const Indexed given = indexed_of(importer, node, 3, kTuples);
  OnnxValue y =
      importer.add<IndexedScatter>(node, given.operands, false, given.options, reduction == "add");
  y.integer = given.operands[0].integer && given.operands[2].integer;
  return {y};
}

template <bool kLargest>
Values arg(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.value(node);
  const bool keep = integer_or(node, "keepdims", 1) != 0;
  if (!keep) x = importer.to_plain(x);
  const std::int64_t axis = stored_axis(x, integer_or(node, "axis", 0));
  refuse_batch(x, axis, "choosing along");
  OnnxValue y =
      importer.add<TopK>(node, {x}, x.image && keep,
                         TopKOptions{.axis = axis,
                                     .largest = kLargest,
                                     .places = true,
                                     .last_first = integer_or(node, "select_last_index", 0) != 0,
                                     .keep = keep});
  y.integer = true;
  return {y};
}

/// Values and their places, each by a node of its own.
Values top_k(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  TopKOptions o{.axis = stored_axis(x, integer_or(node, "axis", -1)),
                .k = integer_or(node, "k", 1),  // before operator set 10
                .largest = integer_or(node, "largest", 1) != 0};
  refuse_batch(x, o.axis, "choosing along");
  if (importer.has_input(node, 1)) {
    const std::vector<std::int64_t> given = importer.constant(node, 1).integers();
    if (given.size() != 1) throw Error("expected one number of elements");
    o.k = given[0];
  }
  Values out;
  for (std::size_t i = 0; i < 2; ++i) {
    o.places = i == 1;
    out.emplace_back();
    if (i >= node.outputs.size() || node.outputs[i].empty()) continue;
    out[i] = importer.add<TopK>(node, {x}, x.image, o);
    out[i].integer = x.integer || o.places;
  }
  return out;
}

/// Comparisons with the numbers 0 to depth - 1 and, for indices from the end, with -depth to -1.
Values one_hot(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.input(node, 0));
  const Tensor depths = importer.constant(node, 1).tensor();
  const Tensor pair = importer.constant(node, 2).tensor();  // off, on
  if (depths.size() != 1 || pair.size() != 2 || !(depths.data[0] >= 1 && depths.data[0] <= 0x1p20f))
    throw Error("expected a depth from 1 to 2^20 and two values");
  const auto depth = static_cast<std::int64_t>(depths.data[0]);
  const std::int64_t axis = axis_in(integer_or(node, "axis", -1), x.rank() + 1);
  std::vector<Extent> wide = x.extents();
  wide.insert(wide.begin() + axis, Extent{1});
  const OnnxValue places = importer.reshape_to(node, x, wide);
  const auto found = [&](std::int64_t first) {
    OnnxConstant numbers{Shape(x.rank() + 1 - static_cast<std::size_t>(axis), 1), true, {}};
    numbers.dims[0] = depth;
    importer.hold(7 * depth);
    for (std::int64_t i = 0; i < depth; ++i) numbers.elements.push_back({0, {first + i}});
    OnnxValue value;
    value.constant = std::make_shared<OnnxConstant>(std::move(numbers));
    return importer.add<Binary>(node, {places, importer.as_graph(value, "")}, false, "equal");
  };
  const OnnxValue chosen = importer.add<Binary>(node, {found(0), found(-depth)}, false, "maximum");
  OnnxValue y = importer.add<Where>(
      node, {chosen, importer.number(pair.data[1]), importer.number(pair.data[0])}, false);
  y.integer = importer.constant(node, 2).integer;
  return {y};
}

Values cumulative_sum(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.value(node);
  const std::vector<std::int64_t> given = importer.constant(node, 1).integers();
  if (given.size() != 1) throw Error("expected one axis");
  const std::int64_t axis = stored_axis(x, given[0]);
  refuse_batch(x, axis, "sums along");
  return {importer.add<CumulativeSum>(
      node, {x}, x.image,
      CumulativeSumOptions{.axis = axis,
                           .exclusive = integer_or(node, "exclusive", 0) != 0,
                           .reverse = integer_or(node, "reverse", 0) != 0})};
}

/// The elements of an axis, or of all, where a condition holds.
Values compress(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.to_plain(importer.value(node));
  const std::vector<std::int64_t> holds = importer.constant(node, 1).integers();
  std::int64_t axis = 0;
  if (node.find("axis") != nullptr) {
    axis = axis_in(integer_or(node, "axis", 0), x.rank());
    refuse_batch(x, axis, "choosing along");
  } else {
    every_axis(x, "choosing along");
    x = importer.reshape_to(node, x, {{element_count(x.shapes[0])}});
  }
  const std::int64_t n = x.shapes[0][static_cast<std::size_t>(axis)];
  if (std::ssize(holds) > n) throw Error("expected a condition for each element at most");
  importer.hold(2 * n);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < std::ssize(holds); ++i)
    if (holds[static_cast<std::size_t>(i)] != 0) places.push_back(i);
  return {importer.add<Gather>(node, {x}, false, axis, std::move(places))};
}

/// The first steps of each sequence in opposite order.
Values reverse_sequence(OnnxImporter& importer, const OnnxNode& node) {
  const OnnxValue x = importer.to_plain(importer.value(node));
  const std::vector<std::int64_t> lengths = importer.constant(node, 1).integers();
  const std::int64_t time = axis_in(integer_or(node, "time_axis", 0), x.rank()),
                     batch = axis_in(integer_or(node, "batch_axis", 1), x.rank());
  every_axis(x, "sequences of");
  const Shape& dims = x.shapes[0];
  const Shape steps = strides_of(dims);
  const auto t = static_cast<std::size_t>(time), b = static_cast<std::size_t>(batch);
  if (std::ssize(lengths) != dims[b] || time == batch)
    throw Error("expected a length for each sequence");
  importer.hold(2 * element_count(dims));  // eight bytes each
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < element_count(dims); ++i) {
    const std::int64_t step = i / steps[t] % dims[t],
                       length = lengths[static_cast<std::size_t>(i / steps[b] % dims[b])];
    if (length < 1 || length > dims[t]) throw Error("expected lengths from 1 to that of the axis");
    places.push_back(step < length ? length - 1 - step : step);
  }
  const OnnxArithmetic make(importer, node);
  return {make.chosen(x, make.numbers(dims, places), {.axis = time})};
}

/// 1 at the first largest element along an axis, else 0.
Values hardmax(OnnxImporter& importer, const OnnxNode& node) {
  OnnxValue x = importer.to_plain(importer.value(node));
  const std::vector<Extent> own = x.extents();
  const bool flattens = importer.opset() < 13;
  const std::int64_t axis = axis_in(integer_or(node, "axis", flattens ? 1 : -1), x.rank());
  const auto at = static_cast<std::size_t>(axis);
  refuse_batch(x, axis, "the largest of");
  if (flattens && at + 1 < own.size()) {
    Extent last{1};
    for (std::size_t i = at; i < own.size(); ++i) last.value *= own[i].value;
    std::vector<Extent> flat(own.begin(), own.begin() + axis);
    flat.push_back(last);
    x = importer.reshape_to(node, x, flat);
  }
  const OnnxArithmetic make(importer, node);
  const OnnxValue place =
      importer.add<TopK>(node, {x}, false, TopKOptions{.axis = axis, .places = true});
  importer.hold(2 * x.shapes[0][at]);  // eight bytes each
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(x.shapes[0][at]));
  std::iota(numbers.begin(), numbers.end(), 0);
  Shape dims(x.rank() - at, 1);
  dims[0] = std::ssize(numbers);
  const OnnxValue y = make.binary("equal", place, make.numbers(std::move(dims), numbers));
  return {importer.reshape_to(node, y, own)};
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
