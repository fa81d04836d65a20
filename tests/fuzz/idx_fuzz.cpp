// A pair of IDX files: two bytes of length (little-endian), the images file, the labels file.
#include <algorithm>
#include <filesystem>

#include "emu/net/data/idx.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

/// The folder that the loader reads holds links to two files in memory.
struct IdxFolder {
  numemu::fuzz::InputFile images, labels;
  numemu::test::TemporaryFolder folder;

  IdxFolder() {
    std::filesystem::create_symlink(images.path(), folder / "train-images-idx3-ubyte");
    std::filesystem::create_symlink(labels.path(), folder / "train-labels-idx1-ubyte");
  }
};

}  // namespace

NUMEMU_FUZZ_TARGET(idx)(const std::uint8_t* data, std::size_t size) {
  static IdxFolder files;
  if (size < 2) {
    numemu::fuzz::loaded = false;
    return 0;
  }
  const std::string_view both = numemu::fuzz::text_of(data + 2, size - 2);
  const std::size_t images = std::min<std::size_t>(data[0] | data[1] << 8, both.size());
  files.images.write(both.substr(0, images));
  files.labels.write(both.substr(images));
  // Each file has the promise of its own.
  numemu::fuzz::run(size, 2 * numemu::fuzz::kPromised,
                    [] { numemu::net::read_idx(files.folder.path(), "train"); });
  return 0;
}
