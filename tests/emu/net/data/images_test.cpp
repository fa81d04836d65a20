// Image sets: what identifies them, and their pixels through an augmented view.
#include "emu/net/data/images.hpp"

#include "emu/net/data/dataset.hpp"
#include "formats/digest.hpp"
#include "tests/catch.hpp"

namespace numemu::net::images_test {
namespace {

/// 2 x 3 images of two channels, bytes that tell image, pixel and channel apart.
Images numbered(std::int64_t count) {
  Images images{count, 2, 3, 2, {}, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t byte = 0; byte < 12; ++byte)
      images.pixels.push_back(static_cast<std::uint8_t>(i * 12 + byte + 1));
    images.labels.push_back(static_cast<std::uint8_t>(i % 3));
  }
  return images;
}

ImageSamples small() {
  return ImageSamples("small", 3, numbered(5520), numbered(2), {0.5, 0.25}, {0.5, 0.125});
}

std::string hash(const std::vector<std::uint8_t>& bytes) {
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

TEST_CASE("the facts of an image set", "[fast]") {
  const ImageSamples samples = small();
  const DataFacts& facts = samples.facts();
  CHECK(facts.kind == DataKind::images);
  CHECK(facts.classes == 3);
  CHECK(facts.target_shape.empty());
  CHECK(facts.input_shape == Shape{2, 3, 2});
  CHECK(facts.sizes.train == 520);
  CHECK(facts.sizes.validation == 5000);
  CHECK(facts.sizes.calibration == 512);
  CHECK(facts.sizes.test == 2);
  const Images train = numbered(5520), test = numbered(2);
  const std::string digests =
      hash(train.pixels) + hash(train.labels) + hash(test.pixels) + hash(test.labels);
  CHECK(facts.digest == sha256_hex(digests).substr(0, 16));
}

TEST_CASE("an augmented image shows the pixels of its view and black beyond", "[fast]") {
  const Dataset data("small", std::make_shared<ImageSamples>(small()));
  const Augmentation what{.shift = 1, .flip = true};
  Targets targets;
  const std::vector<std::int64_t> ids = {0, 17, 300, 519};
  const Tensor plain = data.train_batch(ids, targets);
  bool moved = false;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    const Tensor x = data.train_batch(ids, targets, &what, 5, epoch);
    REQUIRE(x.shape == plain.shape);
    CHECK(targets.classes == std::vector<std::int32_t>{0, 2, 0, 0});
    moved = moved || x.data != plain.data;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const ImageView view = draw_view({what, 5, epoch}, ids[i], 2, 3);
      for (std::int64_t p = 0; p < 6; ++p) {
        const std::int64_t from = view.source(p / 3, p % 3);
        const float* const pixel = plain.data.data() + i * 12 + from * 2;
        const float* const seen = x.data.data() + i * 12 + p * 2;
        CHECK(seen[0] == (from < 0 ? -1.0f : pixel[0]));  // (0 - 0.5) / 0.5
        CHECK(seen[1] == (from < 0 ? -2.0f : pixel[1]));  // (0 - 0.25) / 0.125
      }
    }
  }
  CHECK(moved);
  // A batch of one image is that image of any batch.
  const Tensor all = data.train_batch(ids, targets, &what, 5, 2);
  CHECK(data.train_batch({300}, targets, &what, 5, 2).data ==
        std::vector<float>(all.data.begin() + 24, all.data.begin() + 36));
}

TEST_CASE("copies are neighbouring views of an image, the first that of one copy", "[fast]") {
  const Dataset data("small", std::make_shared<ImageSamples>(small()));
  const Augmentation what{.shift = 1, .flip = true};
  Targets targets, single;
  const Tensor one = data.train_batch({17, 300}, single, &what, 5, 2);
  const Tensor three = data.train_batch({17, 300}, targets, &what, 5, 2, 3);
  CHECK(three.shape == Shape{6, 2, 3, 2});
  const std::int32_t a = single.classes.at(0), b = single.classes.at(1);
  CHECK(targets.classes == std::vector<std::int32_t>{a, a, a, b, b, b});
  const auto row = [](const Tensor& x, std::int64_t i) {
    return std::vector<float>(x.data.begin() + 12 * i, x.data.begin() + 12 * (i + 1));
  };
  CHECK(row(three, 0) == row(one, 0));
  CHECK(row(three, 3) == row(one, 1));
  int equal = 0;
  for (std::int64_t id = 0; id < 100; ++id) {
    const Tensor copies = data.train_batch({id}, targets, &what, 5, 2, 3);
    equal += row(copies, 0) == row(copies, 1);
    const ImageView view = draw_view({what, 5, 2, 2}, id, 2, 3);
    const Tensor plain = data.train_batch({id}, targets);
    const std::int64_t from = view.source(1, 2);
    CHECK(row(copies, 2)[10] == (from < 0 ? -1.0f : plain.data[2 * from]));
  }
  CHECK(equal < 30);  // 18 views are equally likely
}

TEST_CASE("an augmentation of nothing changes nothing", "[fast]") {
  const Dataset data("small", std::make_shared<ImageSamples>(small()));
  Targets targets;
  const Augmentation nothing;
  CHECK(data.train_batch({3, 4}, targets, &nothing, 1, 2).data ==
        data.train_batch({3, 4}, targets).data);
}

}  // namespace
}  // namespace numemu::net::images_test
