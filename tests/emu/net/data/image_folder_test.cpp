// Folders of images: which files count, and what is said of the others.
#include <filesystem>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net::image_folder_test {
namespace {

using Catch::Contains;

/// A grey pixel as PNG, in hexadecimal digits.
constexpr std::string_view kPixel =
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a494441"
    "54789c636800000082008177cd72b60000000049454e44ae426082";

std::string pixel() {
  std::string bytes;
  for (std::size_t i = 0; i < kPixel.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(kPixel.substr(i, 2)), nullptr, 16));
  return bytes;
}

TEST_CASE("files that are no images are counted, images of other kinds refused", "[fast]") {
  const numemu::test::TemporaryFolder folder, cache;
  for (const char* const name : {"a", "b", "c"}) std::filesystem::create_directory(folder / name);
  for (const char* const name : {"a/1.png", "a/2.PNG", "b/1.png"})
    numemu::test::write_file(folder / name, pixel());
  const auto load = [&] {
    return load_dataset("images:" + folder.path() + ",normalize=none", cache.path());
  };
  CHECK_THAT(load().note(), Contains("3 classes, 0 training and 3 test images, 1 x 1 x 3") &&
                                Contains("; classes without test images: 1, the first is 'c'"));
  CHECK_THAT(load().note(), !Contains("left out"));
  numemu::test::write_file(folder / "b/labels.txt", "b");
  CHECK(load().test_count() == 3);
  CHECK_THAT(load().note(), Contains("; files left out, which are no images: 1"));
  numemu::test::write_file(folder / "c/1.webp", "RIFF");
  CHECK_THROWS_WITH(load(), Contains("c/1.webp: expected .png, .jpg or .jpeg files"));
}

}  // namespace
}  // namespace numemu::net::image_folder_test
