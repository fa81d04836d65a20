// Weights as safetensors, of numbers and of codes with scales.
#include "emu/net/model/weights.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(safetensors)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  const std::string_view text = numemu::fuzz::text_of(data, size);
  file.write(text);
  // The first bytes decide: an archive may inflate.
  numemu::fuzz::run(size, text.starts_with("PK") ? numemu::fuzz::kPromised : numemu::fuzz::kTight,
                    [] { numemu::net::read_weights(file.path()); });
  return 0;
}
