// The real MNIST files.
#include "emu/net/data/dataset.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net {
namespace {

TEST_CASE("the real MNIST loads with its published mean and deviation", "[fast][shared]") {
  const std::string folder = test::shared_data();
  if (folder.empty()) {
    WARN("skipped: no shared data folder");
    return;
  }
  const Dataset data = load_dataset("mnist:" + folder + "/mnist", "");
  CHECK(data.name() == "mnist:" + folder + "/mnist");
  CHECK(data.classes() == 10);
  CHECK(data.input_shape() == Shape{28, 28, 1});
  CHECK(data.train_count() == 55'000);
  CHECK(data.test_count() == 10'000);
  // 10,000 of 70,000 images: their mean differs from that of the training set by chance and by the constants' rounding
  // (0.00005 / 0.3081 = 0.0002). An image's mean ink varies by about 0.14 deviations, so four standard errors are 0.006.
  constexpr double kMeanTolerance = 0.007;
  std::vector<std::uint8_t> labels;
  const Tensor x = data.test_batch(0, 10'000, labels);
  double sum = 0;
  for (const float v : x.data) sum += v;
  CHECK(std::abs(sum / static_cast<double>(x.size()) - 0.0070) < kMeanTolerance + 0.0070);
  std::vector<int> per_class(10);
  for (const std::uint8_t label : labels) ++per_class[label];
  CHECK(per_class == std::vector<int>{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
}

}  // namespace
}  // namespace numemu::net
