// Streams of plain and gzip bytes: the same bytes in pieces of any size, damage named by its byte.
#include "formats/storage/byte_stream.hpp"

#include <zlib.h>

#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::byte_stream_test {
namespace {

using test::message_of;
using test::TemporaryFolder;
using test::write_file;

std::string gzip(const std::string& path, const std::string& bytes) {
  gzFile file = gzopen(path.c_str(), "wb1");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return test::read_file(path);
}

std::string all(const std::string& path, std::size_t piece) {
  ByteStream stream(path);
  std::string text, part(piece, '\0');
  for (std::size_t got = piece; got == piece;) {
    got = stream.read(part.data(), piece);
    text.append(part, 0, got);
  }
  CHECK(stream.consumed() == stream.size());
  return text;
}

TEST_CASE("plain and gzip bytes come in pieces of any size", "[fast]") {
  const TemporaryFolder folder;
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 200'000; ++i)
    text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const std::string path = folder / "bytes", zipped = gzip(folder / "z", text);
  for (const std::string& stored : {text, zipped}) {
    write_file(path, stored);
    for (const std::size_t piece : {1000u, 65536u, 1u << 20}) CHECK(all(path, piece) == text);
  }
  // Members follow each other (RFC 1952, 2.2).
  write_file(path, gzip(folder / "z", "abc") + gzip(folder / "z", "") + gzip(folder / "z", "de"));
  CHECK(all(path, 2) == "abcde");
  write_file(path, "");
  CHECK(all(path, 2).empty());
}

TEST_CASE("gzip data that inflate a thousandfold pass in pieces", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "zeros.gz", zeros(std::size_t{1} << 24, '\0');
  const std::string stored = gzip(path, zeros);
  CHECK(stored.size() < zeros.size() / 200);
  ByteStream stream(path);
  std::vector<char> part(std::size_t{1} << 16);
  std::size_t sum = 0;
  while (const std::size_t got = stream.read(part.data(), part.size())) sum += got;
  CHECK(sum == zeros.size());
}

TEST_CASE("damage and missing files are named", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.gz";
  std::string stored = gzip(path, std::string(1000, 'a'));
  write_file(path, stored.substr(0, stored.size() - 9));
  CHECK_THAT(message_of([&] { all(path, 100); }),
             Catch::StartsWith(path + ": inflated byte ") &&
                 Catch::EndsWith("expected more gzip data, found the end of the file"));
  stored[stored.size() - 6] ^= 1;  // of the checksum
  write_file(path, stored);
  CHECK(message_of([&] { all(path, 100); }) ==
        path + ": inflated byte 1000: expected gzip data, found damage (incorrect data check)");
  CHECK_THAT(message_of([&] { ByteStream stream(folder / "none"); }),
             Catch::Contains("none: cannot open: "));
}

}  // namespace
}  // namespace numemu::byte_stream_test
