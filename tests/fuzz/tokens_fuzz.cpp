// Token files: the first byte chooses the width, the rest is the file.
#include "emu/net/data/load_dataset.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(tokens)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  if (size < 1) {
    numemu::fuzz::loaded = false;
    return 0;
  }
  file.write(numemu::fuzz::text_of(data + 1, size - 1));
  const char* const options =
      data[0] % 2 == 0 ? ",context=2,vocabulary=5000" : ",context=2,width=32";
  numemu::fuzz::run(size, numemu::fuzz::kPromised, [&] {
    const numemu::net::Dataset set = numemu::net::load_tokens(file.path() + options);
    numemu::net::Targets targets;
    set.test_batch(set.test_count() - 1, 1, targets);
  });
  return 0;
}
