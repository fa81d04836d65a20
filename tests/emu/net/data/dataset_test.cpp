// Splits, normalisation and the count of test reads, on a set whose pixels tell which image they
// belong to.
#include "emu/net/data/dataset.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net::dataset_test {
namespace {

using numemu::test::message_of;

/// 1 x 2 images of two channels: bytes i % 256, i / 256, and both plus 1; label i % 10.
Images numbered(std::int64_t count) {
  Images images{count, 1, 2, 2, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    for (const std::int64_t byte : {i, i / 256, i + 1, i / 256 + 1})
      images.pixels.push_back(static_cast<std::uint8_t>(byte));
    images.labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return images;
}

const std::vector<double> kMean = {0.25, 0.5}, kDeviation = {0.3, 0.2};

Dataset small() { return Dataset("small", 10, numbered(5600), numbered(30), kMean, kDeviation); }

float normalised(std::int64_t byte, int channel) {
  return static_cast<float>((static_cast<double>(byte % 256) / 255.0 - kMean[channel]) /
                            kDeviation[channel]);
}

void check_image(const Tensor& batch, std::int64_t row, std::int64_t image) {
  const float* x = batch.data.data() + row * 4;
  CHECK(x[0] == normalised(image, 0));
  CHECK(x[1] == normalised(image / 256, 1));
  CHECK(x[2] == normalised(image + 1, 0));
  CHECK(x[3] == normalised(image / 256 + 1, 1));
}

TEST_CASE("the splits are fixed", "[fast]") {
  const Dataset data = small();
  CHECK(data.train_count() == 600);
  CHECK(data.validation_count() == 5000);
  CHECK(data.test_count() == 30);
  CHECK(data.input_shape() == Shape{1, 2, 2});
  Targets targets;
  const Tensor train = data.train_batch({599, 0}, targets);
  CHECK(train.shape == Shape{2, 1, 2, 2});
  CHECK(targets.classes == std::vector<std::int32_t>{9, 0});
  check_image(train, 0, 599);
  check_image(train, 1, 0);
  check_image(data.validation_batch(4998, 2, targets), 1, 5599);
  CHECK(targets.classes == std::vector<std::int32_t>{8, 9});
  check_image(data.calibration_batch(510, 2, targets), 1, 511);
  check_image(data.test_batch(28, 2, targets), 1, 29);
  CHECK(data.test_batch(30, 0, targets).empty());
}

TEST_CASE("only test_batch counts as a test read", "[fast]") {
  const Dataset data = small();
  Targets targets;
  data.train_batch({1, 2}, targets);
  data.validation_batch(0, 2, targets);
  data.calibration_batch(0, 2, targets);
  CHECK(data.test_reads() == 0);
  data.test_batch(0, 1, targets);
  data.test_batch(0, 30, targets);
  CHECK(data.test_reads() == 2);
}

TEST_CASE("copies share the samples and count their own test reads", "[fast]") {
  const Dataset data = small();
  const Dataset copy = data;
  Targets targets;
  copy.test_batch(0, 1, targets);
  CHECK(copy.test_reads() == 1);
  CHECK(data.test_reads() == 0);
  CHECK(&copy.digest() == &data.digest());
  CHECK(copy.calibration_count() == Dataset::kCalibration);
  CHECK(copy.kind() == DataKind::images);
}

TEST_CASE("no image outside a split can be asked for", "[fast]") {
  const Dataset data = small();
  Targets targets;
  CHECK(message_of([&] {
          data.train_batch({0, 600}, targets);
        }) == "small: expected training images 0..599, found 600");
  CHECK(message_of([&] { data.train_batch({-1}, targets); }) ==
        "small: expected training images 0..599, found -1");
  CHECK(message_of([&] { data.validation_batch(4999, 2, targets); }) ==
        "small: expected a range of the 5000 validation images, found 2 from 4999");
  CHECK(message_of([&] { data.calibration_batch(512, 1, targets); }) ==
        "small: expected a range of the 512 calibration images, found 1 from 512");
  CHECK(message_of([&] { data.test_batch(-1, 1, targets); }) ==
        "small: expected a range of the 30 test images, found 1 from -1");
  CHECK(message_of([&] { data.test_batch(1, INT64_MAX, targets); }) ==
        "small: expected a range of the 30 test images, found 9223372036854775807 from 1");
}

TEST_CASE("sets that do not fit are refused", "[fast]") {
  const auto message = [](Images train, Images test, const std::vector<double>& mean) {
    return message_of(
        [&] { Dataset("s", 10, std::move(train), std::move(test), mean, kDeviation); });
  };
  CHECK(message(numbered(5511), numbered(1), kMean) ==
        "s: expected at least 5512 training images, found 5511");
  CHECK(message(numbered(5512), numbered(0), kMean) ==
        "s: expected at least 1 test images, found 0");
  CHECK(message(numbered(5512), numbered(1), {0.5}) ==
        "s: expected mean and deviation of 2 channels");
  Images other = numbered(2);
  std::swap(other.height, other.width);
  CHECK(message(numbered(5512), other, kMean) ==
        "s: expected training and test images of the same extents");
  other.labels.pop_back();
  CHECK(message(numbered(5512), other, kMean) ==
        "s: expected 8 test pixels and 2 labels, found 8 and 1");
}

/// Samples [1] of their numbers, with targets of 2 x 2.
class Mapped final : public Samples {
 public:
  explicit Mapped(TargetKind target) {
    facts_ = {{.target = target,
               .classes = target == TargetKind::classes ? 100'000 : 0,
               .target_shape = {2, 2}}};
    facts_.input_shape = {1};
    facts_.sizes = {.train = 4, .calibration = 2, .test = 3};
  }
  void read(Part, std::int64_t id, const AugmentDraw*, float* x,
            TargetSpan targets) const override {
    *x = static_cast<float>(id);
    CHECK((targets.classes == nullptr) == (facts_.target != TargetKind::classes));
    CHECK((targets.values == nullptr) == (facts_.target != TargetKind::values));
    for (int i = 0; i < 4; ++i) {
      if (targets.classes != nullptr)
        targets.classes[i] = static_cast<std::int32_t>(id * 30'000 + i);
      if (targets.values != nullptr) targets.values[i] = static_cast<float>(id) + 0.5f;
    }
  }
};

TEST_CASE("targets are classes of any number, values, or none", "[fast]") {
  Targets targets;
  const Dataset maps("maps", std::make_shared<Mapped>(TargetKind::classes));
  CHECK(maps.targets_per_sample() == 4);
  maps.train_batch({3, 0}, targets);
  CHECK(targets.classes == std::vector<std::int32_t>{90'000, 90'001, 90'002, 90'003, 0, 1, 2, 3});
  CHECK(targets.values.empty());
  const Dataset values("values", std::make_shared<Mapped>(TargetKind::values));
  values.test_batch(1, 2, targets);
  CHECK(targets.classes.empty());
  CHECK(targets.values == std::vector<float>{1.5f, 1.5f, 1.5f, 1.5f, 2.5f, 2.5f, 2.5f, 2.5f});
  const Dataset none("none", std::make_shared<Mapped>(TargetKind::none));
  CHECK(none.targets_per_sample() == 0);
  none.calibration_batch(0, 2, targets);
  CHECK(targets.classes.empty());
  CHECK(targets.values.empty());
}

}  // namespace
}  // namespace numemu::net::dataset_test
