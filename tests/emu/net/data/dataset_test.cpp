// Splits, normalisation and the count of test reads, on a set whose pixels tell which image they
// belong to.
#include "emu/net/data/dataset.hpp"

#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net {
namespace {

using test::message_of;

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
  std::vector<std::uint8_t> labels;
  const Tensor train = data.train_batch({599, 0}, labels);
  CHECK(train.shape == Shape{2, 1, 2, 2});
  CHECK(labels == std::vector<std::uint8_t>{9, 0});
  check_image(train, 0, 599);
  check_image(train, 1, 0);
  check_image(data.validation_batch(4998, 2, labels), 1, 5599);
  CHECK(labels == std::vector<std::uint8_t>{8, 9});
  check_image(data.calibration_batch(510, 2, labels), 1, 511);
  check_image(data.test_batch(28, 2, labels), 1, 29);
  CHECK(data.test_batch(30, 0, labels).empty());
}

TEST_CASE("only test_batch counts as a test read", "[fast]") {
  const Dataset data = small();
  std::vector<std::uint8_t> labels;
  data.train_batch({1, 2}, labels);
  data.validation_batch(0, 2, labels);
  data.calibration_batch(0, 2, labels);
  CHECK(data.test_reads() == 0);
  data.test_batch(0, 1, labels);
  data.test_batch(0, 30, labels);
  CHECK(data.test_reads() == 2);
}

TEST_CASE("copies share the samples and count their own test reads", "[fast]") {
  const Dataset data = small();
  const Dataset copy = data;
  std::vector<std::uint8_t> labels;
  copy.test_batch(0, 1, labels);
  CHECK(copy.test_reads() == 1);
  CHECK(data.test_reads() == 0);
  CHECK(&copy.digest() == &data.digest());
  CHECK(copy.calibration_count() == Dataset::kCalibration);
  CHECK(copy.kind() == DataKind::images);
}

TEST_CASE("no image outside a split can be asked for", "[fast]") {
  const Dataset data = small();
  std::vector<std::uint8_t> labels;
  CHECK(message_of([&] {
          data.train_batch({0, 600}, labels);
        }) == "small: expected training images 0..599, found 600");
  CHECK(message_of([&] { data.train_batch({-1}, labels); }) ==
        "small: expected training images 0..599, found -1");
  CHECK(message_of([&] { data.validation_batch(4999, 2, labels); }) ==
        "small: expected a range of the 5000 validation images, found 2 from 4999");
  CHECK(message_of([&] { data.calibration_batch(512, 1, labels); }) ==
        "small: expected a range of the 512 calibration images, found 1 from 512");
  CHECK(message_of([&] { data.test_batch(-1, 1, labels); }) ==
        "small: expected a range of the 30 test images, found 1 from -1");
  CHECK(message_of([&] { data.test_batch(1, INT64_MAX, labels); }) ==
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

}  // namespace
}  // namespace numemu::net
