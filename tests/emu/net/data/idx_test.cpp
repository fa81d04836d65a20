// IDX files: round trip, every name, every kind of mistake.
#include "emu/net/data/idx.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::idx_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
using test::big_endian;
using test::gzip;

constexpr std::uint32_t kCount = 3;

std::string pixels() {
  std::string bytes;
  for (std::uint32_t i = 0; i < kCount * 784; ++i) bytes += static_cast<char>(i * 7 % 251);
  return bytes;
}

/// The text of the files that a test then damages.
struct Files {
  std::string images = big_endian({0x803, kCount, 28, 28}) + pixels();
  std::string labels = big_endian({0x801, kCount}) + std::string("\0\x05\x09", 3);
};

std::string message(const TemporaryFolder& folder, const Files& files) {
  write_file(folder / "train-images-idx3-ubyte", files.images);
  write_file(folder / "train-labels-idx1-ubyte", files.labels);
  return message_of([&] { read_idx(folder.path(), "train"); });
}

TEST_CASE("the four spellings of an IDX file", "[fast]") {
  for (const char* joint : {"-", "."}) {
    for (const bool zipped : {false, true}) {
      const TemporaryFolder folder;
      const Files files;
      const std::string ending = zipped ? ".gz" : "";
      write_file(folder / ("t10k-images" + std::string(joint) + "idx3-ubyte" + ending),
                 zipped ? gzip(files.images) : files.images);
      write_file(folder / ("t10k-labels" + std::string(joint) + "idx1-ubyte" + ending),
                 zipped ? gzip(files.labels) : files.labels);
      const Images images = read_idx(folder.path(), "t10k");
      CHECK(images.count == kCount);
      CHECK(images.height == 28);
      CHECK(images.width == 28);
      CHECK(images.channels == 1);
      CHECK(std::string(images.pixels.begin(), images.pixels.end()) == pixels());
      CHECK(images.labels == std::vector<std::uint8_t>{0, 5, 9});
    }
  }
}

TEST_CASE("written IDX files are those of the format", "[fast]") {
  const TemporaryFolder folder;
  const Files files;
  CHECK(message(folder, files).empty());
  write_idx(folder.path(), "copy", read_idx(folder.path(), "train"));
  CHECK(numemu::test::read_file(folder / "copy-images-idx3-ubyte") == files.images);
  CHECK(numemu::test::read_file(folder / "copy-labels-idx1-ubyte") == files.labels);
}

TEST_CASE("a missing IDX file", "[fast]") {
  const TemporaryFolder folder;
  CHECK(message_of([&] { read_idx(folder.path(), "train"); }) ==
        folder.path() +
            ": expected a file train-images-idx3-ubyte or train-images.idx3-ubyte, plain or .gz, "
            "found none");
}

TEST_CASE("mistakes in the images", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "train-images-idx3-ubyte";
  Files files;
  const auto with = [&](const std::string& images) {
    files.images = images;
    return message(folder, files);
  };
  CHECK(with(big_endian({0x801, kCount, 28, 28}) + pixels()) ==
        path + ": byte 0: expected magic 0x00000803, found 0x00000801");
  CHECK(with(big_endian({0x803, kCount, 27, 28}) + pixels()) ==
        path + ": byte 8: expected rows 28, found 27");
  CHECK(with(big_endian({0x803, kCount, 28, 32}) + pixels()) ==
        path + ": byte 12: expected columns 28, found 32");
  CHECK(with(big_endian({0x803})) ==
        path + ": byte 4: expected 4 bytes of the image count, found 0");
  CHECK(with("") == path + ": byte 0: expected 4 bytes of magic, found 0");
  CHECK(with(big_endian({0x803, kCount, 28, 28}) + pixels().substr(1)) ==
        path + ": byte 16: expected 2352 bytes of pixels, found 2351");
  CHECK(with(big_endian({0x803, kCount, 28, 28}) + pixels() + "x") ==
        path + ": byte 2368: expected the end of the file, found more bytes");
  CHECK(with(big_endian({0x803, 0xffffffff, 28, 28})) ==
        path +
            ": byte 16: expected at most 2147483648 bytes of pixels, found 3367254359280 declared");
}

TEST_CASE("mistakes in the labels", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "train-labels-idx1-ubyte";
  Files files;
  const auto with = [&](const std::string& labels) {
    files.labels = labels;
    return message(folder, files);
  };
  CHECK(with(big_endian({0x803, kCount}) + "abc") ==
        path + ": byte 0: expected magic 0x00000801, found 0x00000803");
  CHECK(with(big_endian({0x801, 2}) + std::string(2, '\0')) ==
        path + ": byte 4: expected label count, one for each image: 3, found 2");
  CHECK(with(big_endian({0x801, kCount}) + std::string("\1\2\x0a", 3)) ==
        path + ": byte 10: expected a label of 0..9, found 10");
  CHECK(with(big_endian({0x801, kCount}) + "\1") ==
        path + ": byte 8: expected 3 bytes of labels, found 1");
  CHECK(with(big_endian({0x801, kCount}) + "\1\2\3\4") ==
        path + ": byte 11: expected the end of the file, found more bytes");
}

}  // namespace
}  // namespace numemu::net::idx_test
