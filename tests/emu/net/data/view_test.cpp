// Views of a data set: sizes by hand, which labels are replaced, how many samples calibrate, one
// digest for each view, and the same weights at two sizes.
#include "emu/net/data/view.hpp"

#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "emu/net/forward.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/numerics.hpp"
#include "formats/digest.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::view_test {
namespace {

using numemu::test::message_of;

/// Training images of height x width bytes 0, 10, 20, ... in one channel, as they are.
Dataset ramp(std::int64_t height, std::int64_t width) {
  const auto images = [&](std::int64_t count) {
    Images made{count, height, width, 1, {}, {}};
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t p = 0; p < height * width; ++p)
        made.pixels.push_back(static_cast<std::uint8_t>(10 * p));
      made.labels.push_back(0);
    }
    return made;
  };
  return {"ramp", 2, images(5512), images(1), {0}, {1 / 255.0}};
}

std::vector<float> resized(const Dataset& data, std::int64_t size) {
  Targets targets;
  return view_of(data, {.image_size = size}).train_batch({0}, targets).data;
}

std::vector<std::int32_t> labels_of(const Dataset& data) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(data.train_count()));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  Targets targets;
  data.train_batch(ids, targets);
  return targets.classes;
}

TEST_CASE("an image of another size has the means of what its pixels cover", "[fast]") {
  // 0 10 20 30 / 40 50 60 70 / 80 90 100 110 / 120 130 140 150
  CHECK(resized(ramp(4, 4), 2) == std::vector<float>{25, 45, 105, 125});
  CHECK(resized(ramp(4, 4), 1) == std::vector<float>{75});
  // 0 10 / 20 30: each pixel fills four.
  CHECK(resized(ramp(2, 2), 4) ==
        std::vector<float>{0, 0, 10, 10, 0, 0, 10, 10, 20, 20, 30, 30, 20, 20, 30, 30});
  // 0 10 20 / 30 40 50 / 60 70 80: the middle row and column belong half to each side.
  CHECK(resized(ramp(3, 3), 2) ==
        std::vector<float>{static_cast<float>(40 / 3.0), static_cast<float>(80 / 3.0),
                           static_cast<float>(160 / 3.0), static_cast<float>(200 / 3.0)});
  // 0 10 / 20 30 / 40 50 / 60 70: height and width differ.
  CHECK(resized(ramp(4, 2), 2) == std::vector<float>{10, 20, 50, 60});
  const Dataset data = ramp(4, 4);
  CHECK(view_of(data, {.image_size = 4}).digest() == data.digest());
  CHECK(view_of(data, {.image_size = 3}).input_shape() == Shape{3, 3, 1});
}

TEST_CASE("augmentation is that of the stored pixels", "[fast]") {
  const Dataset data = test::synthetic_dataset(), small = view_of(data, {.image_size = 4});
  const Augmentation augment{.shift = 3, .flip = true};
  Targets targets;
  const Tensor stored = data.train_batch({5}, targets, &augment, 1, 2);
  const Tensor seen = small.train_batch({5}, targets, &augment, 1, 2);
  const float* const s = stored.data.data();
  CHECK(seen.data[0] == static_cast<float>((double{s[0]} + s[1] + (double{s[8]} + s[9])) / 4));
  const Augmentation wide{.crop = 8};
  CHECK(message_of([&] { view_of(data, {.image_size = 16}).train_batch({5}, targets, &wide); }) ==
        "augmentation: crop: expected 0 to 7 pixels, found 8");
}

TEST_CASE("label noise replaces its share of the training labels, by other classes alike",
          "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const std::vector<std::int32_t> clean = labels_of(data);
  const Dataset noisy = view_of(data, {.label_noise = 0.25, .seed = 3});
  const std::vector<std::int32_t> labels = labels_of(noisy);
  const RandomSource replaced{3, Stream::data, tensor_word("data/labels/replaced"), 0};
  const RandomSource other{3, Stream::data, tensor_word("data/labels/class"), 0};
  int changed = 0;
  std::vector<int> by_distance(10);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool expected = replaced.bits(i, 32) < 0x40000000u;
    CHECK((labels[i] != clean[i]) == expected);
    changed += expected;
    ++by_distance[(labels[i] + 10 - clean[i]) % 10];
    if (expected)
      CHECK(std::cmp_equal(labels[i],
                           (clean[i] + 1 + ((std::uint64_t{other.bits(i, 32)} * 9) >> 32)) % 10));
  }
  // Four standard deviations of binomial counts.
  CHECK(std::abs(changed - 160) < 4 * std::sqrt(640 * 0.25 * 0.75));
  for (int d = 1; d < 10; ++d)
    CHECK(std::abs(by_distance[d] - changed / 9.0) < 4 * std::sqrt(changed * 8 / 81.0));
  CHECK(labels_of(view_of(data, {.label_noise = 1})) != clean);
  CHECK(labels_of(view_of(data, {.label_noise = 0.25, .seed = 4})) != labels);
  Targets one, two;
  noisy.validation_batch(0, 200, one);
  data.validation_batch(0, 200, two);
  CHECK(one.classes == two.classes);
  noisy.test_batch(0, 200, one);
  data.test_batch(0, 200, two);
  CHECK(one.classes == two.classes);
}

TEST_CASE("every view has a digest of its own, and a text that says what it is", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  CHECK(view_of(data, {}).digest() == data.digest());
  CHECK(view_of(data, {.seed = 4}).digest() == data.digest());
  std::vector<std::string> digests = {data.digest()};
  for (const DataView& view :
       {DataView{.image_size = 4}, DataView{.image_size = 5}, DataView{.label_noise = 0.1},
        DataView{.label_noise = 0.2}, DataView{.label_noise = 0.1, .seed = 1},
        DataView{.image_size = 4, .label_noise = 0.1}}) {
    const std::string digest = view_of(data, view).digest();
    CHECK(digest.size() == 16);
    CHECK(std::find(digests.begin(), digests.end(), digest) == digests.end());
    digests.push_back(digest);
  }
  CHECK(to_string(DataView{.image_size = 20, .label_noise = 0.1, .seed = 3}) ==
        "image-size 20 label-noise 0.1 seed 3");
  CHECK(to_string(DataView{.seed = 3}).empty());
}

TEST_CASE("views that a set cannot have are refused", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  CHECK(message_of([&] { view_of(data, {.image_size = 5000}); }) ==
        "image-size: expected 1 to 4096 pixels, found 5000");
  CHECK(message_of([&] { view_of(data, {.label_noise = NAN}); }) ==
        "label-noise: expected a share from 0 to 1, found nan");
}

TEST_CASE("each size has its graph, and layers of one name share their weights", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph stored = build_net("resnet20", data);
  initialize(stored, 1);
  const Dataset wide = view_of(data, {.image_size = 12});
  Graph larger = build_net("resnet20", wide);
  initialize(larger, 2);
  load_parameters(larger, parameters_of(stored), "the graph of 8 pixels");
  const auto names = [](const Graph& graph) { return graph.parameters().size(); };
  REQUIRE(names(stored) == names(larger));
  for (std::size_t p = 0; p < stored.parameters().size(); ++p) {
    CHECK(larger.parameters()[p]->name == stored.parameters()[p]->name);
    CHECK(larger.parameters()[p]->value.data == stored.parameters()[p]->value.data);
  }
  Targets targets;
  Numerics numerics;
  CHECK(forward(larger, wide.train_batch({1, 2}, targets), numerics).shape == Shape{2, 10});
}

TEST_CASE("calibration samples that are the test's are told", "[fast]") {
  const Dataset own = test::synthetic_dataset(), ramps = ramp(8, 8);
  CHECK(calibration_note(own).empty());
  // Every image of a ramp is the one of its test.
  const Dataset same = calibrated_on(ramps, ramps);
  CHECK(calibration_note(same) ==
        "512 of the first 512 calibration samples are samples of the test, so the accuracy is not "
        "that on unseen data.");
  CHECK(calibration_note(same, false).empty());
}

/// Two samples whose targets are the number of the output and that of the sample.
class ThreeOutputs final : public Samples {
 public:
  ThreeOutputs() {
    static_cast<TargetFacts&>(facts_) = {"c", TargetKind::classes, 4, {}};
    facts_.further = {{"a", TargetKind::values, 0, {2}}, {"b", TargetKind::values, 0, {}}};
    facts_.kind = DataKind::arrays;
    facts_.input_shape = {1};
    facts_.sizes.test = 2;
    facts_.digest = "three";
  }
  void read(Part, std::int64_t id, const AugmentDraw*, float* x, TargetSpan to) const override {
    *x = static_cast<float>(id);
    if (to.classes != nullptr) *to.classes = static_cast<std::int32_t>(id);
    for (int o = 0; o < 2 && to.further != nullptr; ++o) {
      for (int k = 0; k < 2 - o && to.further[o].values != nullptr; ++k)
        to.further[o].values[k] = static_cast<float>(10 * (o + 1) + k) + static_cast<float>(id);
    }
  }
};

TEST_CASE("a set is seen at the outputs of a network, in their order", "[fast]") {
  const Dataset three("three", std::make_shared<ThreeOutputs>());
  Targets targets;
  const Dataset b = at_output(three, 2);
  CHECK(b.outputs() == 1);
  CHECK(b.test_batch(0, 2, targets).data == std::vector<float>{0, 1});
  CHECK(targets.values == std::vector<float>{20, 21});
  CHECK(targets.classes.empty());

  const NamedShape outputs[] = {{"a", {2}}, {"d", {3}}, {"c", {7}}, {"b", {}}};
  const Dataset four = at_outputs(three, outputs);
  REQUIRE(four.outputs() == 4);
  CHECK(four.target() == TargetKind::values);
  CHECK(four.targets_of(1).target == TargetKind::none);
  CHECK(four.targets_of(2).classes == 7);  // as many as the network has
  four.test_batch(0, 2, targets);
  CHECK(targets.values == std::vector<float>{10, 11, 11, 12});
  CHECK(targets.further[0].values.empty());
  CHECK(targets.further[1].classes == std::vector<std::int32_t>{0, 1});
  CHECK(targets.further[2].values == std::vector<float>{20, 21});
  CHECK(at_output(four, 2).targets_of(0).output == "c");

  CHECK(message_of([&] { at_outputs(three, std::span(outputs, 2)); }) ==
        "data set three: targets of c: expected an output of the network: a, d");
  CHECK(message_of([&] { at_outputs(three, {}); }) ==
        "data set three: targets of c: expected an output of the network: it has one without a "
        "name");
  // Without names there is nothing to order.
  const Dataset plain = ramp(2, 2);
  CHECK(at_outputs(plain, std::span(outputs, 1)).samples() == plain.samples());
}

}  // namespace

TEST_CASE("calibration samples are the first training samples, as many as asked for", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const std::int64_t count = data.train_count();
  REQUIRE(count > data.calibration_count());
  const Dataset more = with_calibration(data, count);
  CHECK(more.calibration_count() == count);
  CHECK(more.test_count() == data.test_count());
  CHECK(more.digest() != data.digest());
  Targets calibration, train;
  CHECK(more.calibration_batch(count - 1, 1, calibration).data ==
        data.train_batch({count - 1}, train).data);
  CHECK(with_calibration(data, data.calibration_count()).digest() == data.digest());
  for (const std::int64_t wrong : {std::int64_t{0}, count + 1})
    CHECK_THAT(numemu::test::message_of([&] { with_calibration(data, wrong); }),
               Catch::Contains("calibration: expected 1 to "));
}

}  // namespace numemu::net::view_test
