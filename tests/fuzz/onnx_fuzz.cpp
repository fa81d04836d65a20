// ONNX files: every record is made, every tensor converted.
#include "emu/net/model/onnx/file.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

void convert(const numemu::net::OnnxTensor& tensor) {
  numemu::net::to_floats(tensor);
  if (is_integer(tensor.type)) numemu::net::to_integers(tensor);
}

void load_onnx(const std::string& path) {
  const numemu::net::OnnxModel model = numemu::net::read_onnx(path);
  for (const auto& tensor : model.graph.initializers) convert(tensor);
  for (const auto& node : model.graph.nodes) {
    for (const auto& attribute : node.attributes) {
      if (attribute.tensor) convert(*attribute.tensor);
    }
  }
}

}  // namespace

NUMEMU_FUZZ_ONNX_TARGET(onnx)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kTight, [] { load_onnx(file.path()); });
  return 0;
}
