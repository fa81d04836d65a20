// Hostile files, plain and gzip: every failure is one line with the file, the offset, the expected
// and the found.
#include "emu/net/data/byte_source.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::byte_source_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::gzip;

std::string all(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

TEST_CASE("plain and gzip files read alike whatever their names", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.gz";
  const std::string text = "abcdefgh";
  for (const std::string& stored : {text, gzip(text), gzip("abc") + gzip("") + gzip("defgh")}) {
    write_file(path, stored);
    ByteSource source(path);
    CHECK(all(source.read(3, "letters")) == "abc");
    CHECK(source.read_big_endian("a number") == 0x64656667);
    CHECK(source.position() == 7);
    CHECK(all(source.read(1, "letters")) == "h");
    CHECK(all(source.read(0, "nothing")).empty());
    source.expect_end();
  }
}

TEST_CASE("data larger than the input buffer inflate", "[fast]") {
  const TemporaryFolder folder;
  std::string text;
  std::uint32_t state = 1;
  for (int i = 0; i < 300'000; ++i)
    text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  write_file(folder / "x", gzip(text));
  ByteSource source(folder / "x");
  CHECK(all(source.read(300'000, "noise")) == text);
  source.expect_end();
}

TEST_CASE("a file that ends too soon", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto read_ten = [&] {
    ByteSource source(path);
    source.read(2, "magic");
    source.read(8, "pixels");
  };
  write_file(path, "abcdefg");
  CHECK(message_of(read_ten) == path + ": byte 2: expected 8 bytes of pixels, found 5");
  write_file(path, gzip("abcdefg"));
  CHECK(message_of(read_ten) == path + ": inflated byte 2: expected 8 bytes of pixels, found 5");
  write_file(path, gzip("abcdefghij").substr(0, 14));
  CHECK_THAT(message_of(read_ten),
             Catch::StartsWith(path + ": inflated byte ") &&
                 Catch::EndsWith(": expected more gzip data, found the end of the file"));
}

TEST_CASE("bytes that follow the data", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto read_three = [&] {
    ByteSource source(path);
    source.read(3, "letters");
    source.expect_end();
  };
  write_file(path, "abcd");
  CHECK(message_of(read_three) ==
        path + ": byte 3: expected the end of the file, found more bytes");
  write_file(path, gzip("abcd"));
  CHECK(message_of(read_three) ==
        path + ": inflated byte 3: expected the end of the file, found more bytes");
  write_file(path, gzip("abc") + "d");
  CHECK_THAT(message_of(read_three), Catch::StartsWith(path + ": inflated byte 3: expected "));
  write_file(path, gzip("abc") + std::string(40, 'd'));
  CHECK(message_of(read_three) ==
        path + ": inflated byte 3: expected gzip data, found damage (incorrect header check)");
}

TEST_CASE("damaged gzip data", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  std::string stored = gzip("abc");
  stored[stored.size() - 8] ^= 1;  // the checksum
  write_file(path, stored);
  CHECK(message_of([&] {
          ByteSource source(path);
          source.read(3, "letters");
          source.expect_end();
        }) == path + ": inflated byte 3: expected gzip data, found damage (incorrect data check)");
}

TEST_CASE("declared sizes are refused before memory is taken", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  for (const bool zipped : {false, true}) {
    write_file(path, zipped ? gzip("abc") : "abc");
    const std::string where = path + (zipped ? ": inflated byte 0: " : ": byte 0: ");
    ByteSource source(path);
    CHECK(message_of([&] { source.read(kMaxArrayBytes + 1, "pixels"); }) ==
          where + "expected at most 2147483648 bytes of pixels, found 2147483649 declared");
    CHECK_THAT(message_of([&] { source.read(kMaxArrayBytes, "pixels"); }),
               Catch::StartsWith(where + "expected 2147483648 bytes of pixels, found "));
    CHECK_THAT(message_of([&] { source.read(-1, "pixels"); }),
               Catch::Contains("found -1 declared"));
  }
}

TEST_CASE("gzip files inflate to 64 times their size and 16 MiB at most", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const std::string zipped = gzip(std::string(std::size_t{20} << 20, '\0'));
  write_file(path, zipped);
  const std::int64_t most =
      64 * static_cast<std::int64_t>(zipped.size()) + (std::int64_t{16} << 20);
  REQUIRE(most < std::int64_t{24} << 20);
  ByteSource source(path);
  source.read(1000, "zeros");
  source.require(most - 1000, "zeros");
  CHECK(message_of([&] { source.read(most - 999, "zeros"); }) ==
        path + ": inflated byte 1000: expected " + std::to_string(most - 999) +
            " bytes of zeros, found at most " + std::to_string(most - 1000));
  CHECK(message_of([&] { source.read_all("zeros"); }) ==
        path + ": inflated byte 1000: expected at most " + std::to_string((most - 1000) / 4) +
            " bytes of zeros, found more");
}

TEST_CASE("all that follows", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  for (const std::size_t size : {std::size_t{3}, std::size_t{65539}, std::size_t{200'000}}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i * i >> 3);
    for (const std::string& stored : {text, gzip(text)}) {
      write_file(path, stored);
      ByteSource source(path);
      source.read(3, "a start");
      CHECK(all(source.read_all("text")) == text.substr(3));
      CHECK(source.position() == static_cast<std::int64_t>(size));
      CHECK(source.read_all("nothing").empty());
      source.expect_end();
    }
  }
}

TEST_CASE("what is not a file", "[fast]") {
  const TemporaryFolder folder;
  CHECK(message_of([&] { ByteSource source(folder.path()); }) ==
        folder.path() + ": expected a regular file");
  CHECK(message_of([&] { ByteSource source(folder / "none"); }) ==
        (folder / "none") + ": expected a regular file");
}

}  // namespace
}  // namespace numemu::net::byte_source_test
