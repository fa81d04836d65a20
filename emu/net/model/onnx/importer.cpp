// Functions for the importer's handlers: values, names, nodes of the graph, and their layouts.
#include "emu/net/model/onnx/importer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "emu/net/memory.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/reduce.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"

namespace numemu::net {
namespace {

/// Operators whose results are whole numbers where their inputs are, beside the views.
constexpr std::string_view kWhole[] = {"add",
                                       "subtract",
                                       "multiply",
                                       "negate",
                                       "abs",
                                       "clip",
                                       "relu",
                                       "where",
                                       "maximum",
                                       "minimum",
                                       "modulo",
                                       "quotient",
                                       "sign",
                                       "remainder",
                                       "reduce_sum",
                                       "reduce_max",
                                       "reduce_min",
                                       "reduce_prod",
                                       "top_k",
                                       "equal",
                                       "greater",
                                       "reduce_l1",
                                       "reduce_sum_square",
                                       "cumulative_sum",
                                       "greater_or_equal",
                                       "indexed_scatter"};

/// As of a checkpoint, and no constant is NaN (load()). Constants that activations meet may be
/// infinite: masks are.
void require_finite(const Op& op) {
  for (const Parameter& parameter : op.parameters()) {
    for (std::size_t i = 0; i < parameter.value.data.size(); ++i) {
      const float v = parameter.value.data[i];
      if (std::isnan(v))
        throw Error(fmt::format("{}: element {}: expected a number, found NaN", parameter.name, i));
      if (std::isinf(v) && op.kind() != "constant")
        throw Error(fmt::format("{}: element {}: expected a finite number, found {}",
                                parameter.name, i, v));
    }
  }
}

/// Raw float32 whose pages go back to the system as they are copied: the largest weight need not
/// fit into memory twice.
std::vector<float> drained(std::string_view raw) {
  constexpr std::size_t kPiece = std::size_t{1} << 22;
  std::vector<float> out;
  out.reserve(raw.size() / sizeof(float));
  for (; !raw.empty(); raw.remove_prefix(std::min(kPiece, raw.size()))) {
    const std::string_view piece = raw.substr(0, kPiece);
    const std::size_t copied = out.size();
    out.resize(copied + piece.size() / sizeof(float));
    std::memcpy(out.data() + copied, piece.data(), piece.size());
    discard_pages(piece);
  }
  return out;
}

}  // namespace

OnnxValue value_of(OnnxConstant constant) {
  OnnxValue out;
  out.constant = std::make_shared<OnnxConstant>(std::move(constant));
  return out;
}

Tensor NodeImport::weights(std::size_t index, std::size_t rank) const {
  Tensor out = tensor(index);
  if (out.shape.size() != rank)
    throw Error(fmt::format("expected input {} to have {} axes, found {}", index, rank,
                            to_string(out.shape)));
  if (out.empty()) throw Error(fmt::format("expected input {} to have elements", index));
  return out;
}

std::int64_t NodeImport::one_integer(std::size_t index, const std::string& otherwise) const {
  const Ints given = constant(index).integers();
  if (given.size() != 1) throw Error(otherwise);
  return given[0];
}

float NodeImport::one_number(std::size_t index, const std::string& otherwise) const {
  const Tensor given = constant(index).tensor();
  if (given.size() != 1) throw Error(otherwise);
  return given.data[0];
}

OnnxValue NodeImport::binary(std::string_view kind, const OnnxValue& a, const OnnxValue& b) const {
  return add<Binary>({a, b}, a.image || b.image, kind);
}

OnnxValue NodeImport::unary(std::string_view kind, const OnnxValue& a) const {
  return add<Pointwise>({a}, a.image, kind);
}

OnnxValue NodeImport::clip(const OnnxValue& a, float low, float high) const {
  return add<Pointwise>({a}, a.image, "clip", PointwiseNumbers{low, high});
}

OnnxValue NodeImport::where(const OnnxValue& condition, const OnnxValue& a,
                            const OnnxValue& b) const {
  return add<Where>({condition, a, b}, false);
}

OnnxValue NodeImport::reduce(std::string_view kind, const OnnxValue& a, Ints axes,
                             bool keep) const {
  return add<Reduce>({a}, a.image && keep, kind, std::move(axes), keep);
}

std::int64_t stored_axis(const OnnxValue& value, std::int64_t axis) {
  axis = axis_in(axis, value.rank());
  if (!value.image || axis == 0) return axis;
  return axis == 1 ? static_cast<std::int64_t>(value.rank()) - 1 : axis - 1;
}

void refuse_batch(const OnnxValue& value, std::int64_t axis, std::string_view what) {
  if (value.has_batch(axis)) throw Error(fmt::format("{} the batch is not supported", what));
}

Ints every_axis(const OnnxValue& value, std::string_view what) {
  Ints axes = ascending(value.rank());
  for (const std::int64_t axis : axes) refuse_batch(value, axis, what);
  return axes;
}

std::vector<Extent> joined_from(const std::vector<Extent>& extents, std::int64_t axis) {
  std::vector<Extent> out(extents.begin(), extents.begin() + axis);
  Extent last{1};
  for (auto i = static_cast<std::size_t>(axis); i < extents.size(); ++i)
    last.value *= extents[i].value;
  out.push_back(last);
  return out;
}

void set_parameter(Op& op, std::size_t index, Tensor value) {
  Parameter& parameter = op.parameters()[index];
  if (parameter.value.size() != value.size())
    throw Error(fmt::format("expected {} of shape {}, found {}", parameter.name,
                            to_string(parameter.value.shape), to_string(value.shape)));
  parameter.value.data = std::move(value.data);
}

void discard_pages(std::string_view bytes) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::string printable(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 100)) out += c < 32 || c == 127 ? '?' : c;
  return out;
}

std::vector<Extent> OnnxValue::extents() const {
  std::vector<Extent> out;
  if (is_constant()) {
    for (const std::int64_t n : constant->dims) out.push_back({n});
    return out;
  }
  for (std::size_t i = 0; i < shapes[0].size(); ++i) {
    const std::int64_t a = shapes[0][i], b = shapes[1][i];
    if (a == b) {
      out.push_back({a});
    } else if (a * kProbeBatches[1] == b * kProbeBatches[0]) {
      out.push_back({a / kProbeBatches[0], true});
    } else {
      throw Error(fmt::format("axis {} depends on the batch, but not in proportion", i));
    }
  }
  if (image) std::rotate(out.begin() + 1, out.end() - 1, out.end());
  return out;
}

const OnnxValue& OnnxImporter::input(const OnnxNode& node, std::size_t index) const {
  if (!has_input(node, index)) throw Error(fmt::format("expected an input number {}", index));
  const auto found = values_.find(node.inputs[index]);
  if (found == values_.end())
    throw Error(
        fmt::format("expected input '{}' to be computed earlier", printable(node.inputs[index])));
  return found->second;
}

OnnxValue& OnnxImporter::constant_input(const OnnxNode& node, std::size_t index) {
  const OnnxValue& given = input(node, index);
  OnnxValue* value = &values_.find(node.inputs[index])->second;
  if (!given.is_constant()) {
    if (!options_.one_sample)
      throw Error(fmt::format("expected input '{}' to be constant", printable(node.inputs[index])));
    decided(given);
    value = &decided_.at(given.number);
  }
  hold(value->constant->size());
  return *value;
}

const OnnxConstant& OnnxImporter::constant(const OnnxNode& node, std::size_t index) {
  OnnxValue& value = constant_input(node, index);
  value.constant = held(value.constant);
  return *value.constant;
}

Tensor OnnxImporter::tensor(const OnnxNode& node, std::size_t index) {
  OnnxValue& value = constant_input(node, index);
  const ConstantRef constant = value.constant;
  if (constant->size() != element_count(constant->dims))
    throw Error("expected one read of a weight");
  if (constant->stored == nullptr || reads_[node.inputs[index]] > 1) return constant->tensor();
  // Its operator follows: the file's bytes need not wait for release().
  value.constant = std::make_shared<OnnxConstant>(OnnxConstant{constant->dims, false, {}});
  const OnnxTensor& stored = *constant->stored;
  if (consumed_ == nullptr || constant.use_count() > 1 || !stored.raw ||
      stored.type != OnnxType::float32)
    return constant->tensor();
  Tensor tensor;
  tensor.shape = constant->dims;
  tensor.data = drained(stored.data);
  return tensor;
}

std::vector<ConstantRef> OnnxImporter::constants(const OnnxNode& node) {
  constexpr std::int64_t kFew = 64;  // axes, sizes, places
  std::vector<ConstantRef> out;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    out.emplace_back();
    if (!has_input(node, i)) continue;
    const OnnxValue& value = input(node, i);
    const bool few = i > 0 && options_.one_sample && !value.is_constant() && value.integer &&
                     element_count(value.shapes[0]) <= kFew;
    out.back() = held(few ? decided(value).constant : value.constant);
  }
  return out;
}

/// A value that the arrays of the run decide, as a constant.
OnnxValue OnnxImporter::decided(const OnnxValue& value) {
  if (value.is_constant()) return value;
  OnnxValue& known = decided_[value.number];
  if (known.constant) return known;
  const Tensor& tensor = evaluated(to_plain(value).number);
  OnnxConstant made{tensor.shape, value.integer, {}};
  if (value.type) made.type = *value.type;
  hold(6 * tensor.size());
  made.elements.reserve(tensor.data.size());
  // The ends of int64 as float32 has them: Slice means "to the end" by them.
  const auto whole = [](float v) {
    if (!(v < 0x1p63f)) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::max(v, -0x1p63f));
  };
  for (const float v : tensor.data)
    made.elements.push_back(value.integer ? Folded{0, {whole(v)}} : Folded{v, {}});
  known.constant = std::make_shared<OnnxConstant>(std::move(made));
  return known;
}

/// What the graph computes in float32 from the arrays of the run, with which it grows: the memory
/// budget bounds it, not the size of the file.
const Tensor& OnnxImporter::evaluated(int value) {
  constexpr std::int64_t kKept = 4096;  // elements: loops ask for the same values again
  const auto inputs = static_cast<int>(graph_.inputs.size());
  std::set<int> needed;
  for (std::vector<int> left{value}; !left.empty();) {
    const int v = left.back();
    left.pop_back();
    if (evaluated_.contains(v) || !needed.insert(v).second) continue;
    if (v >= inputs) {
      const std::vector<int>& reads = graph_.nodes[static_cast<std::size_t>(v - inputs)].inputs;
      left.insert(left.end(), reads.begin(), reads.end());
    }
  }
  const FloatGuard guard;
  Numerics numerics;
  constexpr std::int64_t kBytesOfFloat = sizeof(float);
  std::int64_t bytes = last_evaluated_.size() * kBytesOfFloat;
  const auto require = [&](std::int64_t more, const std::string& what) {
    if (bytes + more > memory_left())
      throw memory_error(fmt::format(
          "what decides sizes in this run ({}) exceeds the memory left by --memory", what));
  };
  for (const int v : needed) {
    if (v < inputs) {
      const GraphInput& input = graph_.inputs[static_cast<std::size_t>(v)];
      const auto array = options_.arrays.find(input.name);
      if (array == options_.arrays.end())
        throw Error(
            fmt::format("expected the array of input '{}', which decides sizes", input.name));
      bytes += array->second->size() * kBytesOfFloat;
      require(0, "input " + input.name);
      evaluated_[v] = *array->second;
      evaluated_[v].shape.insert(evaluated_[v].shape.begin(), 1);
      continue;
    }
    const Node& node = graph_.nodes[static_cast<std::size_t>(v - inputs)];
    std::vector<const Tensor*> reads;
    std::vector<Shape> shapes;
    for (const int read : node.inputs) {
      reads.push_back(&evaluated_.at(read));
      shapes.push_back(reads.back()->shape);
    }
    const Shape shape = node.op->output_shape(shapes);
    bytes += element_count(shape) * kBytesOfFloat;
    require(node.op->memory(shapes).forward * kBytesOfFloat, node.name);
    Tensor output(shape);
    node.op->forward({.layer = node.name, .numerics = numerics}, reads, output);
    evaluated_[v] = std::move(output);
  }
  const bool large = evaluated_[value].size() > kKept;
  if (large) {
    last_evaluated_ = std::move(evaluated_[value]);
    evaluated_.erase(value);
  }
  std::erase_if(evaluated_, [](const auto& entry) { return entry.second.size() > kKept; });
  return large ? last_evaluated_ : evaluated_[value];
}

std::string OnnxImporter::free_name(std::string wanted) {
  const int earlier = names_[wanted]++;
  return earlier == 0 ? wanted : free_name(fmt::format("{}.{}", wanted, earlier));
}

std::string OnnxImporter::node_name(const OnnxNode& node) {
  std::string name = printable(node.name.empty() ? node.op_type : node.name);
  if (name.starts_with('/')) name.erase(0, 1);
  std::replace(name.begin(), name.end(), '/', '.');
  return free_name(name);
}

std::string OnnxImporter::layer_name(const OnnxNode& node, std::size_t weight_input) {
  constexpr std::string_view kWeight = ".weight";
  const std::string_view weight =
      weight_input < node.inputs.size() ? node.inputs[weight_input] : std::string_view();
  if (weight.size() <= kWeight.size() || !weight.ends_with(kWeight)) return node_name(node);
  return free_name(printable(weight.substr(0, weight.size() - kWeight.size())));
}

OnnxValue OnnxImporter::add(const std::string& name, std::unique_ptr<Op> op,
                            const OnnxValues& reads, bool image) {
  if (graph_.nodes.size() >= kMostNodes)
    throw Error(fmt::format("expected at most {} operators", kMostNodes));
  require_finite(*op);
  OnnxValue value;
  value.image = image;
  value.integer = !reads.empty() &&
                  (op->result() == ResultKind::view ||
                   std::find(std::begin(kWhole), std::end(kWhole), op->kind()) != std::end(kWhole));
  std::vector<int> numbers;
  for (const OnnxValue& read : reads) {
    if (read.is_constant()) throw Error("expected a value that is not constant");
    value.integer = value.integer && read.integer;
    numbers.push_back(read.number);
  }
  for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
    std::vector<Shape> shapes;
    for (const OnnxValue& read : reads) shapes.push_back(read.shapes[probe]);
    value.shapes[probe] = op->output_shape(shapes);
    const std::int64_t count = element_count(value.shapes[probe]);
    if (count < 1 || count > kMostElements)
      throw Error(fmt::format("expected 1 to 2^40 elements, found {}", count));
  }
  if (value.shapes[0].size() != value.shapes[1].size())
    throw Error("expected as many axes for every batch");
  if (value.shapes[0].size() > kMostAxes)
    throw Error(
        fmt::format("expected at most {} axes, found {}", kMostAxes, value.shapes[0].size()));
  value.number = graph_.add(name, std::move(op), numbers);
  return value;
}

OnnxValue OnnxImporter::as_graph(const OnnxValue& value, std::string_view name,
                                 std::size_t image_rank) {
  if (!value.is_constant()) return value;
  const OnnxConstant& constant = *value.constant;
  const std::size_t turned = constant.size() == 1 ? 0 : image_rank;
  auto& [known, node] = nodes_of_constants_[{value.constant.get(), turned}];
  if (known.lock() == value.constant) return node;
  hold(constant.size());
  Tensor tensor =
      turned > 0 ? channels_last(*held(value.constant), turned).tensor() : constant.tensor();
  if (tensor.shape.empty() && !computes_ && !options_.one_sample) tensor.shape = {1};
  auto op = std::make_unique<Constant>(std::move(tensor));
  if (!constant.integer) op->set_origin({std::string(value.tensor), value.folded});
  node = add(free_name(name.empty() ? "constant" : printable(name)), std::move(op), {}, false);
  node.integer = constant.integer;
  known = value.constant;
  return node;
}

OnnxValue OnnxImporter::number(float value) {
  return as_graph(value_of({{}, false, {{value, {}}}}), "");
}

bool OnnxImporter::is_read(const OnnxNode& node, std::size_t output) const {
  return output < node.outputs.size() && !node.outputs[output].empty() &&
         reads_.contains(node.outputs[output]);
}

OnnxValue OnnxImporter::repeated(const OnnxNode& node, const OnnxValue& value, std::size_t axis) {
  if (graph_.inputs.empty()) throw Error("a constant that depends on the batch is not folded");
  if (value.rank() <= axis || value.image) throw Error("expected an axis for the batch");
  if (value.shapes[0][axis] != 1) {
    std::vector<Extent> apart = value.extents();
    if (std::ranges::any_of(apart, &Extent::per_batch))
      throw Error("expected the batch on one axis");
    std::vector<Extent> joined = apart;
    joined[axis].per_batch = true;
    apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), Extent{1});
    return reshape_to(node, repeated(node, reshape_to(node, value, apart), axis), joined);
  }
  // Where of the same value twice chooses it whatever the condition holds: its shape is all that
  // counts, one element of each sample.
  OnnxValue sample;
  sample.number = 0;
  std::vector<SliceRange> first;
  for (std::size_t i = 1; i < graph_.inputs[0].shape.size() + 1; ++i)
    first.push_back({static_cast<std::int64_t>(i), 0, 1, 1});
  for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
    sample.shapes[probe] = graph_.inputs[0].shape;
    sample.shapes[probe].insert(sample.shapes[probe].begin(), kProbeBatches[probe]);
  }
  if (!first.empty())
    sample = add(free_name("batch"), std::make_unique<Slice>(std::move(first)), {sample}, false);
  Shape shape(value.rank(), 1);
  shape[axis] = -1;
  if (sample.shapes[0].size() != shape.size() || axis > 0)
    sample = add(free_name("batch"), std::make_unique<Reshape>(std::move(shape)), {sample}, false);
  return add(node_name(node), std::make_unique<Where>(), {sample, value, value}, false);
}

OnnxValue OnnxImporter::to_image(const OnnxValue& value) {
  if (value.is_constant()) return to_image(as_graph(value, ""));
  if (value.image) return value;
  if (value.rank() < 3 || value.rank() > 5)
    throw Error(
        fmt::format("expected images [n, c, ..] of 3 to 5 axes, found {} axes", value.rank()));
  OnnxValue& turned = turned_[{value.number, true}];
  if (turned.number < 0) {
    Ints order{0};
    for (std::size_t i = 2; i < value.rank(); ++i) order.push_back(static_cast<std::int64_t>(i));
    order.push_back(1);
    turned = add(free_name(value.rank() == 4 ? "to_nhwc" : "to_channels_last"),
                 std::make_unique<Transpose>(std::move(order)), {value}, true);
  }
  return turned;
}

OnnxValue OnnxImporter::to_plain(const OnnxValue& value) {
  if (value.is_constant()) return as_graph(value, "");
  if (!value.image) return value;
  OnnxValue& turned = turned_[{value.number, false}];
  if (turned.number >= 0) return turned;
  const Shape& shape = value.shapes[0];
  const bool pixel = std::all_of(shape.begin() + 1, shape.end() - 1,
                                 [](std::int64_t extent) { return extent == 1; });
  std::unique_ptr<Op> op;
  if (pixel) {
    Shape target(shape.size(), 1);
    target[0] = 0;
    target[1] = shape.back();
    op = std::make_unique<Reshape>(std::move(target));
  } else {
    Ints order{0, static_cast<std::int64_t>(shape.size()) - 1};
    for (std::size_t i = 1; i + 1 < shape.size(); ++i)
      order.push_back(static_cast<std::int64_t>(i));
    op = std::make_unique<Transpose>(std::move(order));
  }
  turned = add(free_name(shape.size() == 4 ? "to_nchw" : "to_channels_first"), std::move(op),
               {value}, false);
  return turned;
}

OnnxValue OnnxImporter::reshape_to(const OnnxNode& node, const OnnxValue& plain,
                                   const std::vector<Extent>& target) {
  const std::vector<Extent> own = plain.extents();
  if (own == target) return plain;
  Shape shape;
  std::int64_t open = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool copied = target[i].per_batch && i < own.size() && own[i] == target[i];
    const bool inferred = target[i].per_batch && !copied;
    open += inferred;
    shape.push_back(copied ? 0 : inferred ? -1 : target[i].value);
    if (!target[i].per_batch && target[i].value == 0)
      throw Error("tensors without elements are not supported");
  }
  if (open > 1) throw Error("expected at most one axis that depends on the batch");
  return add(node_name(node), std::make_unique<Reshape>(std::move(shape)), {plain}, false);
}

}  // namespace numemu::net
