// The cache of the generated set: written once, read again, made again when it is damaged.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "emu/net/data/glyphs/glyphs.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"
#include "tests/glyphs_cache.hpp"

namespace numemu::net::load_test {
namespace {

using numemu::test::read_file;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;
namespace fs = std::filesystem;

TEST_CASE("the whole set has the pinned hashes, and a damaged cache is made again", "[fast]") {
  const TemporaryFolder cache;
  const std::string folder = cache / "glyphs";
  const Dataset made =
      load_dataset("glyphs", cache.path());  // throws where the bytes are not the pinned ones
  CHECK(made.name() == "glyphs");
  CHECK(made.train_count() == 55'000);
  CHECK(made.test_count() == 10'000);
  const std::vector<std::string> names = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                          "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  std::vector<std::string> good;
  for (const std::string& name : names) good.push_back(read_file(folder + "/" + name));

  const auto written = fs::last_write_time(folder + "/" + names[0]);
  load_dataset("glyphs", cache.path());
  CHECK(fs::last_write_time(folder + "/" + names[0]) == written);

  std::string flipped = good[0];
  flipped[30'000'000] ^= 1;
  write_file(folder + "/" + names[0], flipped);
  write_file(folder + "/" + names[3], good[3].substr(0, 5000));
  load_dataset("glyphs", cache.path());
  for (std::size_t i = 0; i < names.size(); ++i)
    CHECK(read_file(folder + "/" + names[i]) == good[i]);
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 4);

  Targets targets;
  const Tensor x = load_dataset("mnist:" + folder, "").test_batch(0, 1, targets);
  CHECK(targets.classes[0] == static_cast<std::uint8_t>(good[3][8]));
}

TEST_CASE("the normalised training images have mean 0 and deviation 1", "[fast]") {
  const TemporaryFolder cache;
  numemu::test::share_glyphs(cache.path());
  const Dataset data = load_dataset("glyphs", cache.path());
  Targets targets;
  double sum = 0, squares = 0, count = 0;
  const auto add = [&](const Tensor& x) {
    for (const float v : x.data) {
      sum += v;
      squares += double{v} * v;
    }
    count += static_cast<double>(x.size());
  };
  for (std::int64_t first = 0; first < data.train_count(); first += 5000) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = first; i < first + 5000; ++i) ids.push_back(i);
    add(data.train_batch(ids, targets));
  }
  add(data.validation_batch(0, 5000, targets));
  // The constants have six digits: 5e-7 / 0.182 in the mean and in the deviation.
  constexpr double kTolerance = 3e-6;
  const double mean = sum / count;
  CHECK(std::abs(mean) < kTolerance);
  CHECK(std::abs(std::sqrt(squares / count - mean * mean) - 1) < kTolerance);
}

TEST_CASE("a cache folder that cannot be written is no obstacle", "[fast]") {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  CHECK(load_dataset("glyphs", folder / "file").test_count() == 10'000);
}

}  // namespace
}  // namespace numemu::net::load_test
