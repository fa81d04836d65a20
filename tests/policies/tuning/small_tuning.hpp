// A small network with samples to tune it on: two convolutions and a classifier, drawn weights.
#pragma once
#include <cmath>
#include <string>
#include <utility>

#include "emu/net/build/builder.hpp"
#include "formats/random.hpp"
#include "policies/tuning/tune_step.hpp"

namespace numemu::policies::test {

inline constexpr std::int64_t kSamples = 40, kClasses = 5;

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

/// The state before the first step. The recipe must outlive it.
inline Tuning small_tuning(const Recipe& recipe, std::int64_t samples = kSamples) {
  const net::Tensor all = drawn({samples, 5, 5, 4}, 7);
  Calibration calibration{samples, [all](std::int64_t first, std::int64_t count) {
                            std::vector<net::Tensor> batch;
                            batch.push_back(samples_of(all, first, count));
                            return batch;
                          }};
  Tuning tuning{small_graph(), small_graph(), {}, recipe, "recipe", std::move(calibration), 3};
  complete_ranges(tuning);
  return tuning;
}

/// Every part of the steps of a text, one after another.
inline void run_steps(const std::string& text, Tuning& tuning) {
  for (const TuneStepChoice& choice : parse_tune_steps(text, "--steps")) {
    const auto step = choice.kind->make(*choice.options);
    const std::int64_t parts = step->begin(tuning);
    for (std::int64_t part = 0; part < parts; ++part) step->run(tuning, part, [](double) {});
  }
}

}  // namespace numemu::policies::test
