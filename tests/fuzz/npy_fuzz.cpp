// Arrays as .npy files.
#include "formats/storage/npy.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(npy)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kTight, [] { numemu::read_npy(file.path()); });
  return 0;
}
