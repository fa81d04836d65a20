// Graphs inside nodes, which take their place: a branch of If, the body of Loop and Scan as often
// as it runs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {

/// The results of a graph inside a node, its nodes in place of that node; `given` are its inputs.
OnnxValues OnnxImporter::import_body(const OnnxGraph& body, const OnnxValues& given) {
  constexpr std::int64_t kMostInner = 200'000;  // loops in loops multiply their rounds
  inner_nodes_ += 1 + std::ssize(body.nodes);
  if (inner_nodes_ > kMostInner)
    throw Error(fmt::format("expected inner graphs of at most {} nodes in all rounds", kMostInner));
  std::vector<std::string_view> made;  // names that are free again behind it
  const auto define = [&](std::string_view name) {
    if (name.empty()) return;
    made_.erase(name);
    values_.erase(name);
    made.push_back(name);
  };
  if (given.size() != body.inputs.size())
    throw Error(fmt::format("expected {} inputs of the inner graph, found {}", given.size(),
                            body.inputs.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!made_.insert(body.inputs[i].name).second)
      throw Error(fmt::format("value '{}' is defined twice", printable(body.inputs[i].name)));
    values_[body.inputs[i].name] = given[i];
  }
  add_initializers(body);
  for (const OnnxNode& inner : body.nodes) {
    try {
      import_node(inner);
    } catch (const Error& error) {
      throw Error(fmt::format("node '{}' ({}): {}", printable(inner.name), printable(inner.op_type),
                              error.what()),
                  error.kind());
    }
  }
  OnnxValues results;
  for (const OnnxValueInfo& info : body.outputs) {
    const OnnxValue* const found = settled(info.name);
    if (found == nullptr)
      throw Error(
          fmt::format("result '{}' of the inner graph is not computed", printable(info.name)));
    results.push_back(*found);
    release(info.name);
  }
  for (const OnnxValueInfo& info : body.inputs) define(info.name);
  for (const OnnxNode& inner : body.nodes)
    for (const std::string_view name : inner.outputs) define(name);
  for (const OnnxTensor& tensor : body.initializers) {
    define(tensor.name);
    initializers_.erase(tensor.name);
  }
  return results;
}

/// One number that the file, shapes or the arrays of the run give.
std::int64_t OnnxImporter::single(const OnnxValue& value, std::string_view what) {
  if (!value.is_constant() && !options_.one_sample)
    throw Error(fmt::format("expected {} that follows from the file and from shapes", what));
  const Ints numbers = held(decided(value).constant)->integers();
  if (numbers.size() != 1) throw Error(fmt::format("expected one number as {}", what));
  return numbers[0];
}

/// If: the branch that the condition takes. Loop and Scan: the body as often as it runs.
OnnxValues OnnxImporter::branch_results(const OnnxNode& node) {
  const std::vector<OnnxGraph>& branches = branches_.at(&node);
  if (node.op_type == "If")
    return import_body(branches[single(input(node, 0), "a condition") != 0 ? 1 : 0], {});
  return node.op_type == "Loop" ? loop_results(node, branches[0]) : scan_results(node, branches[0]);
}

namespace {

constexpr std::int64_t kMostRounds = 10'000;

}  // namespace

/// Values of all rounds along a new axis.
OnnxValue OnnxImporter::stacked(const OnnxNode& node, const OnnxValues& rounds, std::int64_t axis) {
  if (rounds.empty()) throw Error("expected at least one round of a loop whose values are kept");
  OnnxValues parts;
  for (const OnnxValue& value : rounds) {
    const OnnxValue x = to_plain(value);
    std::vector<Extent> target = x.extents();
    target.insert(target.begin() + axis_in(axis, target.size() + 1), Extent{1});
    parts.push_back(reshape_to(node, x, target));
    parts.back().integer = value.integer;
  }
  if (parts.size() == 1) return parts[0];
  return NodeImport(*this, node).add<Concat>(parts, false, axis_in(axis, parts[0].rank()));
}

OnnxValues OnnxImporter::loop_results(const OnnxNode& node, const OnnxGraph& body) {
  const std::int64_t most = has_input(node, 0) ? single(input(node, 0), "a number of rounds")
                                               : std::numeric_limits<std::int64_t>::max();
  bool runs = !has_input(node, 1) || single(input(node, 1), "a condition") != 0;
  OnnxValues carried;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) carried.push_back(input(node, i));
  if (body.outputs.size() < carried.size() + 1 || body.outputs.size() != node.outputs.size() + 1)
    throw Error("expected a condition and a result of the body for each output");
  std::vector<OnnxValues> kept(body.outputs.size() - 1 - carried.size());
  for (std::int64_t round = 0; runs && round < most; ++round) {
    if (round == kMostRounds)
      throw Error(fmt::format("expected a loop of at most {} rounds", kMostRounds));
    OnnxValues given{value_of({{}, true, {{0, {round}}}, OnnxType::int64}),
                     value_of({{}, true, {{0, {1}}}, OnnxType::boolean})};
    given.insert(given.end(), carried.begin(), carried.end());
    const OnnxValues results = import_body(body, given);
    runs = round + 1 < most && single(results[0], "a condition") != 0;
    carried.assign(results.begin() + 1,
                   results.begin() + 1 + static_cast<std::ptrdiff_t>(carried.size()));
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i].push_back(results[1 + carried.size() + i]);
  }
  for (const OnnxValues& rounds : kept)
    carried.push_back(is_read(node, carried.size()) ? stacked(node, rounds, 0) : OnnxValue());
  return carried;
}

OnnxValues OnnxImporter::scan_results(const OnnxNode& node, const OnnxGraph& body) {
  if (opset() < 9) throw Error("Scan is read from operator set 9 on");
  const std::int64_t scanned = node.integer_or("num_scan_inputs", 0);
  const auto count = std::ssize(node.inputs);
  if (scanned < 1 || scanned > count) throw Error("expected num_scan_inputs of at least 1");
  const auto carry = static_cast<std::size_t>(count - scanned);
  if (body.outputs.size() < carry || body.outputs.size() != node.outputs.size())
    throw Error("expected a result of the body for each output");
  const std::size_t keeps = body.outputs.size() - carry;
  const auto list = [&](const char* name, std::size_t size) {
    Ints values = node.integers_or(name, Ints(size, 0));
    if (values.size() != size) throw Error(fmt::format("expected {} numbers as {}", size, name));
    return values;
  };
  const auto n = static_cast<std::size_t>(scanned);
  const auto axes = list("scan_input_axes", n), back = list("scan_input_directions", n),
             out_axes = list("scan_output_axes", keeps),
             out_back = list("scan_output_directions", keeps);
  OnnxValues carried, series;
  std::int64_t rounds = -1;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i < carry) {
      carried.push_back(input(node, i));
      continue;
    }
    series.push_back(to_plain(input(node, i)));
    const std::int64_t axis = axis_in(axes[i - carry], series.back().rank());
    refuse_batch(series.back(), axis, "a scan along");
    const std::int64_t length = series.back().shapes[0][static_cast<std::size_t>(axis)];
    if (rounds >= 0 && rounds != length) throw Error("expected inputs of as many rounds");
    rounds = length;
  }
  if (rounds > kMostRounds)
    throw Error(fmt::format("expected a scan of at most {} rounds", kMostRounds));
  std::vector<OnnxValues> kept(keeps);
  for (std::int64_t round = 0; round < rounds; ++round) {
    OnnxValues given = carried;
    for (std::size_t i = 0; i < series.size(); ++i) {
      const std::int64_t place = back[i] != 0 ? rounds - 1 - round : round;
      given.push_back(NodeImport(*this, node)
                          .add<Gather>({series[i]}, false, axis_in(axes[i], series[i].rank()),
                                       Ints{place}, Shape{}));
      given.back().integer = series[i].integer;
    }
    const OnnxValues results = import_body(body, given);
    carried.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carry));
    for (std::size_t i = 0; i < keeps; ++i) kept[i].push_back(results[carry + i]);
  }
  for (std::size_t i = 0; i < keeps; ++i) {
    if (out_back[i] != 0) std::ranges::reverse(kept[i]);
    carried.push_back(is_read(node, carry + i) ? stacked(node, kept[i], out_axes[i]) : OnnxValue());
  }
  return carried;
}

void OnnxImporter::import_branch(const OnnxNode& node) {
  note_outputs(node);
  for (const std::string_view name : node.inputs) settled(name);
  const OnnxValues results = branch_results(node);
  if (results.size() != node.outputs.size())
    throw Error(fmt::format("expected {} results of the inner graph, found {}", node.outputs.size(),
                            results.size()));
  for (const std::string_view name : node.inputs) release(name);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!node.outputs[i].empty()) values_[node.outputs[i]] = results[i];
  }
}

}  // namespace numemu::net
