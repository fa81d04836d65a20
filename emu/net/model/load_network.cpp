// Distinguishes names of networks from files.
#include "emu/net/model/load_network.hpp"

#include <filesystem>
#include <utility>

#include "emu/net/model/onnx_import.hpp"
#include "emu/net/nets.hpp"
#include "formats/error.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::net {
namespace {

LoadedNetwork from_onnx(const std::string& path, const Dataset& data) {
  ImportedModel model = load_onnx(path);
  if (model.inputs.size() != 1 || model.outputs.size() != 1) {
    throw Error(path + ": expected a network of one input and one output, found " +
                std::to_string(model.inputs.size()) + " and " +
                std::to_string(model.outputs.size()));
  }
  const Shape& shape = model.graph.inputs.at(0).shape;
  if (shape != data.input_shape()) {
    throw Error(path + ": expected an input of shape " + to_string(data.input_shape()) +
                " for the data set " + data.name() + ", found " + to_string(shape));
  }
  // As recipes, folders and reports call it.
  model.graph.name = utf8_text(std::filesystem::path(path).stem().string());
  return {std::move(model.graph), true};
}

}  // namespace

bool names_onnx_file(const std::string& name) { return name.ends_with(".onnx"); }

LoadedNetwork load_network(const std::string& name, const Dataset& data) {
  if (names_onnx_file(name)) return from_onnx(name, data);
  return {build_net(name, data), false};
}

}  // namespace numemu::net
