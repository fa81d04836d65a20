// Vector files as text: read in parts, and read again from what is written of them.
#include <algorithm>
#include <cstring>

#include "emu/oracle/files/text.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using namespace numemu::oracle;

/// One field of each kind: a word of several codes, several words, all 64 bits, one to leave out.
Layout layout() {
  return {{.name = "a", .bits = 6, .count = 3, .packed = true},
          {.name = "b", .bits = 19, .count = 2},
          {.name = "c", .bits = 64},
          {.name = "flags", .bits = 8, .optional = true}};
}

std::string written(std::string_view text, std::size_t at_once) {
  TextReader reader("v.txt", [=, at = std::size_t{0}](char* to, std::size_t most) mutable {
    const std::size_t n = std::min({most, at_once, text.size() - at});
    std::memcpy(to, text.data() + at, n);
    at += n;
    return n;
  });
  const Layout fields = layout();
  Records records;
  std::string again;
  while (reader.read(fields, 3, records)) append_text(fields, records, again);
  return again;
}

}  // namespace

NUMEMU_FUZZ_TARGET(records)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = numemu::fuzz::text_of(data, size);
  std::string once;
  const bool loaded =
      numemu::fuzz::run(size, numemu::fuzz::kTight, [&] { once = written(text, 13); });
  if (loaded && written(once, 1000) != once) numemu::fuzz::finding();
  return 0;
}
