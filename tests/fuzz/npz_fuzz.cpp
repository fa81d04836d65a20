// Weights as .npz archives, deflated ones too.
#include "emu/net/model/weights.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(npz)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kPromised, [] { numemu::net::read_npz(file.path()); });
  return 0;
}
