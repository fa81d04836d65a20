// Tuning through its function: figures before and after, samples, and what a run is known by.
#include "api/networks.hpp"
#include "tests/api/workplace.hpp"
#include "tests/catch.hpp"

namespace tune_test {

using namespace numemu;
using namespace numemu::test;
using Catch::Contains;

namespace {

/// lenet on glyphs under a recipe of few bits.
api::TuneRequest few_bits(const Workplace& w, const std::string& steps, const std::string& out) {
  return {.net = "lenet",
          .data = "glyphs",
          .recipe = w.file("r.json", R"({"numemu_recipe": 1, "roles": {
            "weight": {"format": "int3", "granularity": "channel"},
            "activation": {"format": "int4"}}})"),
          .steps = steps,
          .out = w / out,
          .samples = 64,
          .images = 100};
}

}  // namespace

TEST_CASE("layers are compared with those that a step has scaled in float32, too", "[fast]") {
  const Workplace w;
  api::TuneRequest asked = few_bits(w, "equalise", "t");
  asked.recipe = w.file("r.json", R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "int8"}}})");
  asked.images = 32;
  const api::Tuned tuned = api::tune(asked, w.context);
  REQUIRE(tuned.layers.size() == 5);
  constexpr double kLeast = 25;  // dB; about 35 and more; 10 and less against other scales
  for (const api::Tuned::Decibels& layer : tuned.layers) {
    INFO(layer.layer);
    CHECK(layer.after > kLeast);
  }
  // What is typed agrees with itself.
  CHECK(tuned.checkpoint == w / "t/lenet-glyphs.safetensors");
  CHECK(tuned.validation);
  CHECK(tuned.unread);
  CHECK(tuned.samples == 32);
  CHECK(tuned.calibration_samples == 64);
  REQUIRE(tuned.steps.size() == 1);
  REQUIRE(tuned.after);
  CHECK(tuned.after->n == 32);
  REQUIRE(tuned.after->top1);
  CHECK(tuned.after->top1->difference ==
        Approx(tuned.after->top1->value - tuned.float32->top1->value));
  CHECK(tuned.gain->measure->is_top1());
  CHECK(w.said == "measuring before the first step\nmeasuring the checkpoint\n");
}

TEST_CASE("a step that gives ranges counts those that the recipe uses", "[fast]") {
  const Workplace w;
  api::TuneRequest asked = few_bits(w, "calibrate(percentile(99.9))", "t");
  asked.recipe = w.file("d.json", R"({"numemu_recipe": 1, "calibrate": {"rule": "dynamic"},
    "roles": {"weight": {"format": "int8"}, "activation": {"format": "int8"}}})");
  asked.samples = 1000;
  asked.images = 20;
  const api::Tuned tuned = api::tune(asked, w.context);
  CHECK_THAT(tuned.steps.at(0).second,
             Contains("ranges of 0 activations: the recipe has no static scale of any"));
  CHECK(tuned.calibration_samples == 512);
  CHECK(tuned.notes.at(0) == "glyphs has 512 calibration samples, fewer than the 1000 asked for.");
}

TEST_CASE("steps read the samples of another set, as evaluation does", "[fast]") {
  const Workplace w;
  std::vector<float> x(48 * 28 * 28);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
  const std::string other = "npy:x=" + w.array("x.npy", {48, 1, 28, 28}, x) + ",test=1";
  api::TuneRequest asked = few_bits(w, "calibrate", "other");
  asked.calibrate_on = other;
  const api::Tuned apart = api::tune(asked, w.context);
  CHECK(apart.calibration_samples == 47);
  CHECK_FALSE(apart.unread);  // that set may hold the validation samples
  const std::string own = api::tune(few_bits(w, "calibrate", "own"), w.context).checkpoint;
  const auto loss = [&](const std::string& net, const std::string& calibrate_on = "") {
    const api::Evaluated evaluated = api::evaluate(
        {.net = net, .data = "glyphs", .recipe = asked.recipe, .calibrate_on = calibrate_on},
        {.images = 64, .predictions = false}, w.context);
    return *evaluated.row.metrics.loss;
  };
  // The ranges are those that evaluation finds on the same samples.
  CHECK(loss(apart.checkpoint) == loss("lenet", other));
  CHECK(loss(apart.checkpoint) != loss(own));
}

TEST_CASE("a run is known by all that its checkpoint holds", "[fast]") {
  const Workplace w;
  // The same weights with other ranges.
  const std::string a = api::tune(few_bits(w, "calibrate", "a"), w.context).checkpoint;
  const std::string b =
      api::tune(few_bits(w, "calibrate(percentile(80))", "b"), w.context).checkpoint;
  const auto bytes = [&](const std::string& from, const std::string& out) {
    api::TuneRequest asked = few_bits(w, "bias_correction", out);
    asked.net = from;
    return read_file(api::tune(asked, w.context).checkpoint);
  };
  const std::string first = bytes(a, "t"), second = bytes(b, "t");
  CHECK(second != first);
  CHECK(second == bytes(b, "u"));
}

}  // namespace tune_test
