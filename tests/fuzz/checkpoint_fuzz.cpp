// Checkpoints that have the graph of an ONNX file, with weights of numbers and of codes.
#include "emu/net/model/onnx/checkpoint.hpp"
#include "emu/net/model/weights.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(checkpoint)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kPromised, [] {
    numemu::net::import_checkpoint(
        numemu::net::read_weights(file.path()), file.path(),
        [](const numemu::net::OnnxModel&) { return numemu::net::ImportOptions(); });
  });
  return 0;
}
