// Checkpoints as safetensors.
#include "emu/net/model/safetensors.hpp"
#include "tests/fuzz/harness.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kTight, [] { numemu::net::read_safetensors(file.path()); });
  return 0;
}
