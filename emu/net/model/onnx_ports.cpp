// Inputs and outputs of a model: which axis has the samples, and the views that put it first.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emu/net/model/onnx_import.hpp"
#include "emu/net/model/onnx_importer.hpp"
#include "emu/net/ops/transpose.hpp"
#include "formats/error.hpp"

namespace numemu::net {

std::size_t batch_axis(const OnnxValueInfo& info) {
  const auto named = [](const OnnxDimension& dimension) {
    std::string text(dimension.symbol);
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    return text.find("batch") != std::string::npos;
  };
  const auto found = std::ranges::find_if(info.dims, named);
  return found == info.dims.end() ? 0 : static_cast<std::size_t>(found - info.dims.begin());
}

void OnnxImporter::add_inputs() {
  const bool images = has_convolutions();
  std::vector<std::pair<std::string_view, std::size_t>> turned;  // the batch on a later axis
  for (const OnnxValueInfo& info : model_.graph.inputs) {
    // An initializer may be listed as an input.
    if (initializers_.contains(info.name)) continue;
    const std::string name = printable(info.name);
    if (!made_.insert(info.name).second)
      throw Error(fmt::format("{}: duplicate input '{}'", model_.path, name));
    const auto given = options_.input_shapes.find(name);
    const std::size_t batch = batch_axis(info);
    std::vector<std::int64_t> dims;
    for (const OnnxDimension& dimension : info.dims) dims.push_back(dimension.extent);
    if (given != options_.input_shapes.end() && !info.has_shape) dims = given->second;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == batch && info.has_shape && dims[i] > 0) {
        if (fixed_batch_ > 0 && fixed_batch_ != dims[i])
          throw Error(
              fmt::format("{}: input {}: expected {} on axis {} (the batch) as in the inputs "
                          "before, found {}",
                          model_.path, name, fixed_batch_, i, dims[i]));
        fixed_batch_ = dims[i];
      }
      if (dims[i] < 1 && given != options_.input_shapes.end() && i < given->second.size())
        dims[i] = given->second[i];
      if (i != batch && dims[i] < 1) {
        const std::string_view symbol =
            i < info.dims.size() && !info.dims[i].symbol.empty() ? info.dims[i].symbol : "unknown";
        throw Error(fmt::format(
            "{}: input {}: axis {} ({}) has no extent in the file; the input array determines it",
            model_.path, name, i, printable(symbol)));
      }
    }
    if (dims.empty() || dims.size() > kMostAxes)
      throw Error(fmt::format("{}: input {}: expected 1 to {} axes, found {}", model_.path, name,
                              kMostAxes, dims.size()));
    OnnxValue value;
    value.image = images && dims.size() == 4 && batch == 0;
    value.number = static_cast<int>(graph_.inputs.size());
    Shape shape = dims;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(batch));
    if (value.image) shape = {dims[2], dims[3], dims[1]};
    for (std::size_t probe = 0; probe < kProbeBatches.size(); ++probe) {
      value.shapes[probe] = shape;
      value.shapes[probe].insert(value.shapes[probe].begin(), kProbeBatches[probe]);
      if (element_count(value.shapes[probe]) > kMostElements)
        throw Error(fmt::format("{}: input {}: expected at most 2^40 elements", model_.path, name));
    }
    value.integer = info.type != 0 && is_integer(static_cast<OnnxType>(info.type));
    free_name(name);  // no node shall have it
    graph_.inputs.push_back({name, shape});
    inputs_.push_back({name, value.number, value.image, static_cast<int>(batch)});
    if (batch > 0) turned.emplace_back(info.name, batch);
    values_[info.name] = std::move(value);
  }
  if (graph_.inputs.empty()) throw Error(model_.path + ": expected a graph with an input");
  for (const auto& [name, batch] : turned) {
    OnnxValue& value = values_.find(name)->second;
    std::vector<std::int64_t> order;
    for (std::size_t i = 0; i < value.rank(); ++i)
      order.push_back(static_cast<std::int64_t>(i < batch ? i + 1 : i == batch ? 0 : i));
    value = add(free_name(printable(name) + ".turned"), std::make_unique<Transpose>(order), {value},
                false);
  }
}

/// A value with the batch on its first axis, and the axis on which it was.
std::pair<OnnxValue, int> OnnxImporter::batch_first(const OnnxValue& value,
                                                    const std::string& name) {
  std::size_t batch = 0, depend = 0;
  for (std::size_t i = 0; i < value.rank(); ++i) {
    if (value.shapes[0][i] == value.shapes[1][i]) continue;
    batch = i;
    ++depend;
  }
  if (depend != 1 || batch == 0 || value.shapes[0][batch] != kProbeBatches[0] ||
      value.shapes[1][batch] != kProbeBatches[1])
    return {value, 0};
  std::vector<std::int64_t> order{static_cast<std::int64_t>(batch)};
  for (std::size_t i = 0; i < value.rank(); ++i)
    if (i != batch) order.push_back(static_cast<std::int64_t>(i));
  return {add(free_name(name + ".turned"), std::make_unique<Transpose>(order), {value}, false),
          static_cast<int>(batch)};
}

}  // namespace numemu::net
