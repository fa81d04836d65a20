// PNG and JPEG files: decoded, or refused before the memory of their pixels is taken.
#include "emu/net/data/picture.hpp"
#include "tests/fuzz/harness.hpp"

NUMEMU_FUZZ_TARGET(picture)(const std::uint8_t* data, std::size_t size) {
  // A file may declare 1032 pixels for each of its bytes; three bytes each, and a JPEG file of
  // several scans has its coefficients, two bytes of each of three channels, besides.
  constexpr std::int64_t kPixels = 1032, kBytes = 3 + 6;
  numemu::fuzz::run(
      size, numemu::fuzz::kPromised + kPixels * kBytes * static_cast<std::int64_t>(size),
      [&] { numemu::net::decode_picture("picture", numemu::fuzz::text_of(data, size)); });
  return 0;
}
