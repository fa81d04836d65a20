// The real MNIST files.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::mnist_test {
namespace {

TEST_CASE("the real MNIST loads with its published mean and deviation", "[fast][shared]") {
  const std::string folder = test::shared_data();
  if (folder.empty()) {
    WARN("skipped: no shared data folder");
    return;
  }
  const Dataset data = load_dataset("mnist:" + folder + "/mnist", "");
  CHECK(data.name() == "mnist");
  CHECK(data.classes() == 10);
  CHECK(data.input_shape() == Shape{28, 28, 1});
  CHECK(data.train_count() == 55'000);
  CHECK(data.test_count() == 10'000);
  Targets targets;
  std::vector<std::int64_t> ids(55'000);
  std::iota(ids.begin(), ids.end(), 0);
  const Tensor x = data.train_batch(ids, targets);
  double sum = 0, squares = 0;
  for (const float v : x.data) {
    sum += v;
    squares += double{v} * v;
  }
  const double n = static_cast<double>(x.size()), mean = sum / n;
  // 55,000 of the 60,000 images the constants describe. An image's mean varies by about 0.14
  // deviations: the images left out move the mean by four times 0.14 / sqrt(55,000) * sqrt(5,000 /
  // 60,000) = 0.0007, four digits by 0.0002.
  constexpr double kTolerance = 0.001;
  CHECK(std::abs(mean) < kTolerance);
  CHECK(std::abs(std::sqrt(squares / n - mean * mean) - 1) < kTolerance);
  data.test_batch(0, 10'000, targets);
  std::vector<int> per_class(10);
  for (const std::int32_t label : targets.classes) ++per_class[label];
  CHECK(per_class == std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
}

}  // namespace
}  // namespace numemu::net::mnist_test
