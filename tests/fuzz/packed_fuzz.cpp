// Checkpoints of other programs: every tensor whose layout is read becomes numbers.
#include <vector>

#include "formats/storage/packed/packed_file.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(packed)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::fuzz::run(size, numemu::fuzz::kTight, [] {
    numemu::PackedFile packed(file.path());
    for (const numemu::PackedFile::Item& item : packed.items()) {
      if (item.layout == nullptr) continue;
      const numemu::PackedTensor tensor = packed.tensor(item.name);
      std::vector<float> numbers(static_cast<std::size_t>(tensor.elements()));
      packed.read(tensor, 0, tensor.rows, numbers.data());
    }
  });
  return 0;
}
