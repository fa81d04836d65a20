// JSON texts: parsed, and read again from what they print.

#include "formats/storage/json_reader.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(json)(const std::uint8_t* data, std::size_t size) {
  static numemu::fuzz::InputFile file;
  file.write(numemu::fuzz::text_of(data, size));
  numemu::Json json;
  const bool loaded = numemu::fuzz::run(size, numemu::fuzz::kTight, [&] {
    json = numemu::parse_json(numemu::read_text(file.path()), file.path());
  });
  if (loaded && numemu::parse_json(json.dump(), "again") != json) numemu::fuzz::finding();
  return 0;
}
