// Archives of numpy as a data set: entries x, y, x_test, y_test of any type and shape.
#include <filesystem>

#include "emu/net/data/load_dataset.hpp"
#include "formats/error.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

/// The set's kind of file is told by its name.
struct Named {
  numemu::fuzz::InputFile file;
  numemu::test::TemporaryFolder folder;
  Named() { std::filesystem::create_symlink(file.path(), folder / "a.npz"); }
};

/// Bytes need a normalisation, other numbers refuse one.
numemu::net::Dataset load(const std::string& path) {
  try {
    return numemu::net::load_arrays(path);
  } catch (const numemu::Error&) {
    return numemu::net::load_arrays(path + ",mean=0.5,deviation=0.25");
  }
}

}  // namespace

NUMEMU_FUZZ_TARGET(arrays)(const std::uint8_t* data, std::size_t size) {
  static Named named;
  named.file.write(numemu::fuzz::text_of(data, size));
  // Arrays, their numbers in the order of images, and a batch: each as large as an archive may be.
  constexpr std::int64_t kCopies = 12;
  numemu::fuzz::run(size,
                    kCopies * (numemu::fuzz::kPromised +
                               numemu::fuzz::kExpansion * static_cast<std::int64_t>(size)),
                    [&] {
                      const numemu::net::Dataset set = load(named.folder / "a.npz");
                      numemu::net::Targets targets;
                      set.test_batch(set.test_count() - 1, 1, targets);
                    });
  return 0;
}
