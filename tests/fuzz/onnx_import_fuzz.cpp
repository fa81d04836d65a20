// ONNX files as networks: imported whole, with constants folded and shapes followed.
#include "emu/net/model/onnx/import.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(onnx_import)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kPromised, [] { numemu::net::load_onnx(file.path()); });
  return 0;
}
