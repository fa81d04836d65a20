// A small network with samples to tune it on: two convolutions and a classifier, drawn weights.
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "formats/random.hpp"
#include "policies/tune/base/distillation.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::policies::test {

inline constexpr std::int64_t kSamples = 40, kClasses = 5;
inline constexpr char kW3A8[] = R"({"numemu_recipe": 1, "roles": {
    "weight": {"format": "int3", "granularity": "channel"}, "activation": {"format": "int8"}}})";

/// Numbers in [-1, 1), a function of seed and shape.
inline net::Tensor drawn(const net::Shape& shape, std::uint64_t seed) {
  RandomSource random;
  random.seed = seed;
  net::Tensor x(shape);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = static_cast<float>(
        std::ldexp(static_cast<double>(random.bits(static_cast<std::uint64_t>(i), 32)), -31) - 1);
  return x;
}

/// conv1 (4 channels to 6), relu, conv2 (6 to 6), relu, mean over space, fc; all with biases.
inline net::Graph small_graph() {
  net::Builder b("small", {5, 5, 4}, kClasses);
  const net::Conv2dOptions conv{.out_channels = 6, .kernel_height = 3, .kernel_width = 3, .pad = 1};
  b.conv("conv1", conv)
      .relu("relu1")
      .conv("conv2", conv)
      .relu("relu2")
      .global_pool("pool")
      .classifier("fc");
  net::Graph graph = b.take();
  net::initialize(graph, 1);
  for (net::Parameter* parameter : graph.parameters()) {
    if (parameter->name.ends_with(".bias"))
      parameter->value = drawn(parameter->value.shape, parameter->value.data.size());
  }
  return graph;
}

/// The state before the first step, of a graph that reads such samples. The recipe must outlive it.
inline Tuning tuning_of(const Recipe& recipe, net::Graph graph, net::Graph reference,
                        const net::Tensor& all) {
  const std::int64_t samples = all.dim(0);
  Calibration calibration{samples, [all](std::int64_t first, std::int64_t count) {
                            std::vector<net::Tensor> batch;
                            batch.push_back(samples_of(all, first, count));
                            return batch;
                          }};
  Tuning tuning{std::move(graph), std::move(reference),   {}, recipe,
                "recipe",         std::move(calibration), 3};
  complete_ranges(tuning);
  return tuning;
}
inline Tuning small_tuning(const Recipe& recipe, std::int64_t samples = kSamples) {
  return tuning_of(recipe, small_graph(), small_graph(), drawn({samples, 5, 5, 4}, 7));
}

/// The divergence of the tuned network's class probabilities from float32's on all samples.
inline double divergence(const Tuning& tuning) {
  net::Numerics float32;
  const auto numerics = tuned_numerics(tuning);
  const auto all = tuning.calibration.batch(0, tuning.calibration.samples);
  const CalibrationStep step(0, tuning.calibration.samples);
  return kl_divergence(net::forward(tuning.reference, all, float32, step),
                       net::forward(tuning.graph, all, *numerics, step));
}

/// The squared difference between the logits of the network as eval computes them and float32's.
inline double off(const Tuning& tuning) {
  const CalibrationStep step(0, kSamples);
  const auto batch = tuning.calibration.batch(0, kSamples);
  const auto numerics = tuned_numerics(tuning);
  net::Numerics float32;
  const net::Tensor a = net::forward(tuning.graph, batch, *numerics, step),
                    b = net::forward(tuning.reference, batch, float32, step);
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double d = double{a.data[i]} - double{b.data[i]};
    sum += d * d;
  }
  return sum;
}

/// All that steps change: parameters and ranges.
inline std::vector<float> tuned_numbers(const Tuning& tuning) {
  std::vector<float> all;
  for (const net::Parameter* parameter : tuning.graph.parameters())
    all.insert(all.end(), parameter->value.data.begin(), parameter->value.data.end());
  for (const auto& [layer, ranges] : tuning.ranges) {
    for (const ValueRange& range : ranges.weight) all.insert(all.end(), {range.low, range.high});
    if (ranges.activation) all.insert(all.end(), {ranges.activation->low, ranges.activation->high});
  }
  return all;
}

/// The first step of a text, a new one for each part, as after restarts; its last summary, "" where
/// the step has another number of parts.
inline std::string run_restarted(const std::string& text, std::int64_t parts, Tuning& tuning) {
  const std::vector<TuneStepChoice> choices = parse_tune_steps(text, "--steps");
  net::NamedState state;
  std::string summary;
  for (std::int64_t part = 0; part < parts; ++part) {
    const auto step = choices[0].kind->make(*choices[0].options);
    if (step->begin(tuning) != parts) return "";
    if (part > 0) step->load_state(state);
    step->run(tuning, part, [](double) {});
    state.clear();
    step->save_state(state);
    summary = step->summary();
  }
  return summary;
}

/// Every part of the steps of a text, one after another.
inline void run_steps(const std::string& text, Tuning& tuning) {
  for (const TuneStepChoice& choice : parse_tune_steps(text, "--steps")) {
    const auto step = choice.kind->make(*choice.options);
    const std::int64_t parts = step->begin(tuning);
    for (std::int64_t part = 0; part < parts; ++part) step->run(tuning, part, [](double) {});
  }
}

/// The summary of run_restarted() of a small network; "" where a run without restarts gives other
/// bits.
inline std::string restarted_alike(const std::string& text, std::int64_t parts,
                                   const Recipe& recipe) {
  Tuning whole = small_tuning(recipe), broken = small_tuning(recipe);
  run_steps(text, whole);
  const std::string summary = run_restarted(text, parts, broken);
  return tuned_numbers(broken) == tuned_numbers(whole) ? summary : "";
}

}  // namespace numemu::policies::test
