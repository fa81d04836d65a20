// Noise at every layer: the standard error in decibels, and layers that are parts of an operator.
#include "experiments/predict/layer_noise.hpp"

#include <omp.h>

#include <atomic>
#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "experiments/predict/left_out.hpp"
#include "experiments/predict/tensor_noise.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace layer_noise_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

policies::Recipe recipe_of(const std::string& format) {
  const std::string role = R"({"format": ")" + format + R"("})";
  return policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": )" + role + R"(, "activation": )" + role + "}}",
      "recipe");
}

struct Run {
  net::Graph graph;
  policies::FloatReference reference;
};

Run small_run(std::int64_t samples) {
  Run run;
  run.graph = testing::small_net().graph;
  net::Targets targets;
  run.reference = policies::float_reference(
      run.graph, testing::small_dataset().calibration_batch(0, samples, targets));
  return run;
}

LayerMeasurement measured(const Run& run, const policies::Recipe& recipe) {
  policies::RecipeNumerics numerics(recipe, run.graph, "recipe");
  numerics.freeze(run.graph, run.reference);
  return measure_layers(run.graph, numerics, run.reference);
}

}  // namespace

TEST_CASE("one pass measures tensors and layers, and lets weights go node by node", "[fast]") {
  for (const char* const format : {"int4", "mxfp4"}) {
    const policies::Recipe recipe = recipe_of(format);
    Run kept = small_run(8), released = small_run(8);
    FitCache fits;
    std::vector<TensorNoise> want = predict_tensors({recipe, kept.graph}, kept.reference, fits);
    std::vector<TensorNoise> found = want;
    policies::RecipeNumerics apart(recipe, kept.graph), once(recipe, released.graph);
    apart.freeze(kept.graph, kept.reference);
    once.freeze(released.graph, released.reference);
    const LayerMeasurement layers = measure_layers(kept.graph, apart, kept.reference);
    measure_tensors(want, {recipe, kept.graph}, kept.reference, &apart);
    const LayerMeasurement same =
        measure_once(found, once, once, released.reference, [&](const net::Node& node) {
          policies::release_weights(
              released.graph.nodes[static_cast<std::size_t>(&node - released.graph.nodes.data())],
              once);
        });
    CHECK(same.db == layers.db);
    CHECK(same.output.db == layers.output.db);
    CHECK(same.output_error == layers.output_error);
    REQUIRE(found.size() == want.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].measured_mse == want[i].measured_mse);
      CHECK(found[i].standard_error == want[i].standard_error);
      CHECK(want[i].measured_mse > 0);
    }
    for (const net::GemmLayer& layer : net::gemm_layers(released.graph))
      CHECK((layer.weight == nullptr || layer.weight->empty()));
    CHECK_THROWS_WITH(measure_tensors(found, {recipe, released.graph}, released.reference),
                      Catch::Contains("/weight") && Catch::Contains("found them released"));
  }
}

TEST_CASE("verdicts of layers", "[fast]") {
  CHECK(layer_verdict(20, 20.9) == Verdict::holds);
  CHECK(layer_verdict(20, 18) == Verdict::fails);
  CHECK(layer_verdict(HUGE_VAL, HUGE_VAL) == Verdict::none);  // float32: nothing to judge
  CHECK(layer_verdict(NAN, 20) == Verdict::none);
  CHECK(layer_verdict(20, HUGE_VAL) == Verdict::fails);
  // One sample has no standard error.
  for (const double db : {20.9, 18.0}) CHECK(layer_verdict(20, db, 1) == Verdict::undecided);
  CHECK(layer_verdict(20, NAN, 1) == Verdict::fails);
  CHECK(layer_verdict(HUGE_VAL, HUGE_VAL, 1) == Verdict::none);
  CHECK(layer_verdict(20, 20.9, 2) == Verdict::holds);
}

TEST_CASE(
    "the standard error in decibels is that of mean signal over mean noise, samples being a sample",
    "[fast]") {
  const Run run = small_run(64);
  const policies::Recipe recipe = recipe_of("int4");
  const LayerMeasurement layers = measured(run, recipe);
  // The same by hand: a graph of its own, powers per sample, 10 / ln 10 times the relative error.
  policies::RecipeNumerics numerics(recipe, run.graph, "recipe");
  numerics.freeze(run.graph, run.reference);
  const net::Tensor logits = net::forward(run.graph, run.reference.batch, numerics);
  std::vector<double> power(64), signal(64);
  double mean = 0, mean_signal = 0, spread = 0;
  for (std::int64_t i = 0; i < logits.size(); ++i) {
    const double error = double{logits.data[i]} - run.reference.logits.data[i];
    power[i / 10] += error * error;
    signal[i / 10] += double{run.reference.logits.data[i]} * run.reference.logits.data[i];
  }
  for (const double p : power) mean += p / 64;
  for (const double s : signal) mean_signal += s / 64;
  for (std::size_t i = 0; i < 64; ++i)
    spread += std::pow(power[i] / mean - signal[i] / mean_signal, 2);
  const double expected = 10 / std::log(10.0) * std::sqrt(spread / 63 / 64);
  CHECK(layers.output_error == Approx(expected).epsilon(1e-9));
  CHECK(layers.output_error > 0);
  CHECK(layers.output.db == layers.db.at("fc3"));
  CHECK(layers.output.gained_db > layers.output.db);
}

TEST_CASE("the measured noise of a weight is that of the codes that the network multiplied",
          "[fast]") {
  Run run = small_run(4);
  const policies::Recipe recipe = recipe_of("int8");
  policies::RecipeNumerics numerics(recipe, run.graph, "recipe");
  numerics.freeze(run.graph, run.reference);
  CHECK(numerics.roles().frozen_weight("fc1") == nullptr);
  measure_layers(run.graph, numerics, run.reference);
  REQUIRE(numerics.roles().frozen_weight("fc1") != nullptr);
  FitCache fits;
  std::vector<TensorNoise> noises = predict_tensors({recipe, run.graph}, run.reference, fits);
  std::vector<TensorNoise> again = noises;
  measure_tensors(again, {recipe, run.graph}, run.reference);
  measure_tensors(noises, {recipe, run.graph}, run.reference, &numerics);
  for (std::size_t i = 0; i < noises.size(); ++i)
    CHECK(noises[i].measured_mse == again[i].measured_mse);
  // Of another weight the codes are wrong; another quantization would find new ones.
  for (net::Parameter* parameter : run.graph.parameters())
    for (float& w : parameter->value.data) w += 1;
  measure_tensors(noises, {recipe, run.graph}, run.reference, &numerics);
  for (const TensorNoise& noise : noises)
    if (noise.source.role == net::Role::weight) CHECK(noise.measured_mse == Approx(1).epsilon(0.1));
}

TEST_CASE("the standard error of a prediction is that of noise relative to signal", "[fast]") {
  // Blocks follow their numbers, so that noise is as loud as its sample: chunks of 8 samples, each
  // chunk twice as large as the one before or eight times smaller, have the same SQNR.
  Run run;
  run.graph.name = "linear";
  run.graph.inputs = {{"x", {64}}};
  run.graph.add("fc", std::make_unique<net::Linear>(64, 16, false), {0});
  net::initialize(run.graph, 3);
  net::Tensor x({256, 64});
  const RandomSource random;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double u =
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -31);
    x.data[i] = static_cast<float>(std::ldexp(u - 1, static_cast<int>(i / 64 / 8 % 4)));
  }
  run.reference = policies::float_reference(run.graph, x);
  std::vector<double> db;
  double reported = 0;
  constexpr int kSeeds = 8;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const std::string text = R"({"numemu_recipe": 1, "seed": )" + std::to_string(seed) +
                             R"(, "roles": {"activation": {"format": "mxfp4"}}})";
    const LayerPrediction predicted =
        predict_layers({policies::Recipe::parse_text(text, "recipe"), run.graph}, run.reference);
    db.push_back(predicted.output.db);
    reported += predicted.output_error / kSeeds;
  }
  // The loudness alone would give 10 / ln 10 times 1.06 / sqrt(32), 0.8 dB.
  CHECK(reported < 0.3);
  // The spread over eight draws lies within a factor of 2.3 of its expectation (chi, 99.5 %); that
  // over samples, which all draws share, adds to what is reported.
  double mean = 0, squares = 0;
  for (const double d : db) mean += d / kSeeds;
  for (const double d : db) squares += (d - mean) * (d - mean);
  CHECK(reported > std::sqrt(squares / (kSeeds - 1)) / 2.3);
}

TEST_CASE("one sample has no standard error and float32 has no noise", "[fast]") {
  CHECK(measured(small_run(1), recipe_of("int4")).output_error == HUGE_VAL);
  const policies::Recipe plain = policies::Recipe::parse_text(R"({"numemu_recipe": 1})", "recipe");
  const LayerMeasurement clean = measured(small_run(8), plain);
  CHECK(clean.output.db == HUGE_VAL);
  CHECK(clean.output_error == 0);
}

TEST_CASE("every layer has a measurement in every kind of network", "[fast]") {
  for (const std::string name : {"lstm-char", "dlrm-small", "char-transformer"}) {
    Run run;
    const bool text = net::net_kind(name) == net::DataKind::text;
    run.graph = net::build_net(name, text ? net::Shape{4} : net::Shape{21}, text ? 9 : 2);
    net::initialize(run.graph, 4);
    net::Tensor x(text ? net::Shape{3, 4} : net::Shape{3, 21});
    for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = static_cast<float>(i * 3 % 7);
    run.reference = policies::float_reference(run.graph, x);
    const policies::Recipe recipe = recipe_of("int8");
    const LayerMeasurement layers = measured(run, recipe);
    const LayerPrediction predicted = predict_layers({recipe, run.graph}, run.reference);
    for (const std::string& layer : net::gemm_layer_names(run.graph)) {
      INFO(name << " " << layer);
      REQUIRE(layers.db.count(layer) == 1);
      REQUIRE(predicted.db.count(layer) == 1);
      CHECK(std::isfinite(layers.db.at(layer)));
      CHECK(layers.db.at(layer) > 0);
      CHECK(std::fabs(predicted.db.at(layer) - layers.db.at(layer)) < 6);
    }
  }
}

namespace {

/// Predicted beside measured on a network with random weights: every layer within a decibel, every
/// tensor's empirical prediction equal to the measurement.
void check_predictions(const Run& run, const std::string& roles, std::size_t tensors) {
  INFO(roles);
  const policies::Recipe recipe =
      policies::Recipe::parse_text(R"({"numemu_recipe": 1, "roles": {)" + roles + "}}", "recipe");
  policies::RecipeNumerics numerics(recipe, run.graph, "recipe");
  numerics.freeze(run.graph, run.reference);
  const LayerMeasurement layers = measure_layers(run.graph, numerics, run.reference);
  const LayerPrediction predicted =
      predict_layers({recipe, run.graph}, run.reference, numerics.roles().static_scales());
  for (const auto& [layer, db] : layers.db) {
    INFO(layer);
    if (std::isfinite(db)) CHECK(std::fabs(predicted.db.at(layer) - db) < kLayerHolds);
  }
  FitCache fits;
  std::vector<TensorNoise> noises =
      predict_tensors({recipe, run.graph}, run.reference, fits, numerics.roles().static_scales());
  measure_tensors(noises, {recipe, run.graph}, run.reference, &numerics);
  CHECK(noises.size() == tensors);
  for (const TensorNoise& noise : noises) {
    INFO(noise.source.layer << " " << net::to_string(noise.source.role));
    CHECK(noise.empirical_verdict() == Verdict::holds);
    CHECK(noise.measured_mse > 0);
  }
}

Run image_run() {
  Run run;
  run.graph = net::build_net("lenet", {28, 28, 1}, 10);
  net::initialize(run.graph, 4);
  net::Tensor x({8, 28, 28, 1});
  const RandomSource random;
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(random.uniform(i)) - 0.3f;
  run.reference = policies::float_reference(run.graph, x);
  return run;
}

Run text_run() {
  Run run;
  run.graph = net::build_net("char-transformer", {32}, 40);
  net::initialize(run.graph, 4);
  net::Tensor x({8, 32});
  const RandomSource random;
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = static_cast<float>(random.bits(i, 16) % 40);
  run.reference = policies::float_reference(run.graph, x);
  return run;
}

}  // namespace

TEST_CASE("groups along all inputs of an output are predicted, a short last one too", "[fast]") {
  // Depths of 25, 150, 400, 120 and 84.
  check_predictions(image_run(),
                    R"("weight": {"format": "int4", "granularity": "block", "block": 128,
                       "axis": "reduction"}, "activation": {"format": "bfloat16", "scale": "none"})",
                    10);
}

TEST_CASE("the noise of codes with a zero point is predicted", "[fast]") {
  check_predictions(image_run(),
                    R"("weight": {"format": "int8"},
                       "activation": {"format": "uint8", "zero_point": "calibrated"})",
                    10);
}

TEST_CASE("the noise of keys, values and embeddings is predicted", "[fast]") {
  const Run run = text_run();
  check_predictions(run, R"("embedding": {"format": "int4", "granularity": "channel"})", 2);
  check_predictions(run, R"("key": {"format": "int4", "granularity": "channel"},
                            "value": {"format": "int4", "granularity": "row"})",
                    8);
}

TEST_CASE("a common gain of the outputs is taken out of their SQNR", "[fast]") {
  // Products three times too large: all of the error is a gain.
  class Tripled : public net::Numerics {
   public:
    void product(const net::Step& step, const net::Product& p) override {
      net::Numerics::product(step, p);
      for (std::int64_t i = 0; i < p.d_stack.count() * p.m * p.n && p.layer == "fc3"; ++i)
        p.d[i] *= 3;
    }
  };
  const Run run = small_run(16);
  Tripled tripled;
  const LayerMeasurement layers = measure_layers(run.graph, tripled, run.reference);
  CHECK(layers.output.db == Approx(10 * std::log10(1.0 / 4)).margin(1e-4));
  CHECK(layers.output.gain == Approx(1.0 / 3));
  CHECK(layers.output.gained_db > 100);
}

TEST_CASE("predictions of a small network hold, with their error", "[fast]") {
  const Run run = small_run(256);
  // A network of 10^5 random weights: what is left are the draws of 32 probes and of one rounding.
  constexpr double kNear = 1;
  for (const char* format : {"int4", "int8", "mxfp4", "mxfp8_e4m3", "nvfp4", "float6_e3m2fn"}) {
    const policies::Recipe recipe = recipe_of(format);
    const LayerMeasurement layers = measured(run, recipe);
    const LayerPrediction predicted = predict_layers({recipe, run.graph}, run.reference);
    for (const auto& [layer, db] : layers.db) {
      INFO(format << " " << layer);
      CHECK(std::fabs(predicted.db.at(layer) - db) < kNear);
    }
    CHECK(predicted.output.db == Approx(predicted.db.at("fc3")).epsilon(1e-6));
    CHECK(std::fabs(predicted.output.gain - layers.output.gain) < 0.05);
    CHECK(predicted.output_error > 0);
    CHECK(predicted.output_error < 0.5);
  }
}

TEST_CASE("an error in one probe reaches the caller, for any number of threads", "[fast]") {
  // Copies its input, and fails on the third batch.
  class Failing : public net::Op {
   public:
    explicit Failing(std::atomic<int>& calls) : Op({.kind = "failing"}), calls_(calls) {}
    net::Shape output_shape(net::Shapes inputs) const override { return inputs[0]; }
    void forward(const net::OpCall& call, net::OpInputs inputs,
                 net::Tensor& output) const override {
      if (++calls_ == 3) throw Error(std::string(call.layer) + ": expected no third batch");
      output.data = inputs[0]->data;
    }
    void backward(const net::OpCall&, const net::OpBackward&) const override {}

   private:
    std::atomic<int>& calls_;
  };
  std::atomic<int> calls = 0;
  Run run = small_run(1);
  run.graph.add("last", std::make_unique<Failing>(calls));
  net::Targets targets;
  run.reference = policies::float_reference(
      run.graph, testing::small_dataset().calibration_batch(0, 40, targets));
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    calls = 0;
    CHECK_THROWS_WITH(predict_layers({recipe_of("int4"), run.graph}, run.reference),
                      "last: expected no third batch");
  }
  omp_set_num_threads(before);
}

TEST_CASE("predictions are the same for any number of threads", "[fast]") {
  const Run run = small_run(40);  // five chunks, used again and again
  const policies::Recipe recipe = recipe_of("mxfp4");
  const int before = omp_get_max_threads();
  std::vector<std::map<std::string, double>> all;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    all.push_back(predict_layers({recipe, run.graph}, run.reference).db);
  }
  omp_set_num_threads(before);
  CHECK(all[0] == all[1]);
  CHECK(all[0] == all[2]);
}

TEST_CASE("layers before the first noise have none, and probes follow the network's size",
          "[fast]") {
  const Run run = small_run(8);
  const policies::Recipe late = policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "layers": [{"match": "fc2", "roles": {"weight": {"format": "int4"}}}]})",
      "recipe");
  const LayerPrediction predicted = predict_layers({late, run.graph}, run.reference);
  CHECK(predicted.db.at("fc1") == HUGE_VAL);
  CHECK(std::isfinite(predicted.db.at("fc2")));
  CHECK(probe_plan(1e6, 512).probes == kProbes);
  CHECK(probe_plan(1e6, 512).samples == kProbeSamples);
  CHECK(probe_plan(1e6, 3).samples == 3);
  CHECK(probe_plan(1e12, 1).probes == kFewestProbes);
  CHECK(probe_plan(0x1p34 / 8 / 8, 512).probes == 8);
}

TEST_CASE("a product that never runs has no figure", "[fast]") {
  Run run;
  run.graph.inputs = {{"x", {1, 8}}};
  run.graph.add("lstm", std::make_unique<net::Lstm>(8, 4), {0});
  net::initialize(run.graph, 1);
  net::Tensor x({8, 1, 8});
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i)));
  run.reference = policies::float_reference(run.graph, x);
  for (const char* const format : {"int4", "int8", "mxfp4", "nvfp4", "float8_e4m3fn"}) {
    INFO(format);
    const policies::Recipe recipe = recipe_of(format);
    FitCache fits;
    policies::RecipeNumerics numerics(recipe, run.graph);
    numerics.freeze(run.graph, run.reference);
    std::vector<TensorNoise> tensors =
        predict_tensors({recipe, run.graph}, run.reference, fits, numerics.roles().static_scales());
    measure_tensors(tensors, {recipe, run.graph}, run.reference, &numerics);
    for (const TensorNoise& tensor : tensors)
      CHECK((tensor.source.layer == "lstm.input" || tensor.source.role == net::Role::weight));
    LayerPrediction predicted =
        predict_layers({recipe, run.graph}, run.reference, numerics.roles().static_scales());
    leave_out(predicted, {recipe, run.graph}, tensors);
    CHECK(std::isnan(predicted.db.at("lstm.recurrent")));
    CHECK(std::isfinite(predicted.db.at("lstm.input")));
    const LayerMeasurement measured = measure_layers(run.graph, numerics, run.reference);
    CHECK(std::isnan(measured.db.at("lstm.recurrent")));
    CHECK(std::isfinite(measured.db.at("lstm.input")));
  }
}

TEST_CASE("layer noise: streamed samples give what a larger reference gives", "[fast]") {
  const net::Graph graph = testing::small_net().graph;
  const net::Dataset data = testing::small_dataset();
  const policies::Recipe recipe = policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"},
                                        "activation": {"format": "mxfp4"}}})",
      "recipe");
  policies::RecipeNumerics numerics(recipe, graph, "recipe");
  net::Targets targets;
  const auto reference = [&](std::int64_t count) {
    return policies::float_reference(graph, data.calibration_batch(0, count, targets));
  };
  numerics.freeze(graph, reference(15));
  const auto more = [&](std::int64_t first, std::int64_t count) {
    net::Targets unused;
    return std::vector{data.calibration_batch(15 + first, count, unused)};
  };
  const LayerMeasurement whole = measure_layers(graph, numerics, reference(kMeasuredSamples));
  const LayerMeasurement streamed =
      measure_layers(graph, numerics, reference(15), {data.calibration_count() - 15, more});
  const double interval = 2 * 1.96 * streamed.output_error;
  CHECK((streamed.samples == kMeasuredSamples || interval < kShortInterval));
  CHECK(streamed.samples >= kFewestStreamed);
  const LayerMeasurement same = measure_layers(graph, numerics, reference(streamed.samples));
  CHECK(streamed.output.db == Approx(same.output.db).epsilon(1e-12));
  // What all samples have in common is no signal.
  CHECK(streamed.output_centred_db == Approx(same.output_centred_db).epsilon(1e-9));
  CHECK(same.output_centred_db < same.output.db);
  CHECK(streamed.db.at("fc2") == Approx(same.db.at("fc2")).epsilon(1e-12));
  CHECK(streamed.error.at("fc2") == Approx(same.error.at("fc2")).epsilon(1e-9));
  CHECK(whole.samples == kMeasuredSamples);
  const LayerMeasurement alone = measure_layers(graph, numerics, reference(15));
  CHECK(alone.samples == 15);
}

TEST_CASE("layer noise: verdicts use the interval", "[fast]") {
  CHECK(layer_verdict(10.2, 12.1, 15, 0.8) == Verdict::undecided);
  CHECK(layer_verdict(10.2, 9.8, 256, 0.2) == Verdict::holds);
  CHECK(layer_verdict(10.2, 9.8, 256, 0.5) == Verdict::undecided);
  CHECK(layer_verdict(10, 14, 256, 0.2) == Verdict::fails);
  CHECK(layer_verdict(10, 12, 256, 0.6) == Verdict::undecided);
  CHECK(layer_verdict(10, NAN, 1, NAN) == Verdict::fails);
}

}  // namespace layer_noise_test
