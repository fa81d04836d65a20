// Tensors between operators as codes: on which grid, with whose scale, and products whose codes
// integers alone make, beside sums in integers.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "emu/net/build/builder.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/views.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/parsed.hpp"
#include "tests/policies/tune/base/small_tuning.hpp"

namespace numemu::static_test {

using Catch::Contains;
using namespace policies;
using namespace policies::test;

using Tensors = std::map<std::string, net::Tensor>;

/// What every operator gives, behind its edge.
struct Recorder final : net::Forwarding {
  using Forwarding::Forwarding;
  void edge(const net::Step& step, const net::Edge& edge, net::Tensor& x) override {
    Forwarding::edge(step, edge, x);
    results[std::string(edge.layer)] = x;
  }
  Tensors results;
};

net::Tensor numbers(const net::Shape& shape, std::uint32_t seed) {
  std::mt19937 random(seed);
  net::Tensor x(shape);
  for (float& v : x.data) v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-30f;
  return x;
}

/// conv1, relu1 | dw (depthwise, 3 x 3), relu2 (6) | left, right, their sum, last | fc.
net::Graph branches(std::uint64_t seed = 3) {
  net::Builder b("branches", {6, 6, 3}, 5);
  b.conv("conv1", {.in_channels = 3, .out_channels = 8, .kernel_height = 3, .kernel_width = 3});
  b.relu("relu1");
  b.conv("dw", {.in_channels = 8,
                .out_channels = 8,
                .kernel_height = 3,
                .kernel_width = 3,
                .pad = 1,
                .groups = 8});
  const int both = b.relu6("relu2").value();
  const int left = b.conv("left", {.in_channels = 8, .out_channels = 4}).value();
  b.at(both);
  const int right = b.conv("right", {.in_channels = 8, .out_channels = 4}).value();
  b.node("sum", std::make_unique<net::Binary>("add"), {left, right});
  b.relu("last").flatten("flat").classifier("fc");
  net::Graph graph = b.take();
  net::initialize(graph, seed);
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  for (net::Parameter* p : graph.parameters()) {
    if (!p->name.ends_with("bias")) continue;
    for (float& v : p->value.data)
      v = static_cast<float>(static_cast<std::int32_t>(random())) * 0x1p-33f;
  }
  return graph;
}

/// The network under a recipe, calibrated, and its results on a batch.
struct Run {
  net::Graph graph = branches();
  std::unique_ptr<RecipeNumerics> numerics;
  net::Tensor batch = numbers({2, 6, 6, 3}, 5);
  Tensors results;

  explicit Run(const std::string& keys) {
    const Recipe recipe = Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r.json");
    numerics = std::make_unique<RecipeNumerics>(recipe, graph, "r.json");
    numerics->freeze(graph, 8, [](std::int64_t first, std::int64_t count) {
      return std::vector<net::Tensor>{
          numbers({count, 6, 6, 3}, static_cast<std::uint32_t>(first + 11))};
    });
    Recorder recorder(*numerics);
    net::forward(graph, batch, recorder);
    results = recorder.results;
  }
  TensorScale scale(const std::string& layer) const {
    return numerics->roles().static_scales().at(layer);
  }
};

const std::string kRoles =
    R"j("roles": {"weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "int8"}})j";
const std::string kShifted =
    R"j("roles": {"weight": {"format": "int8", "granularity": "channel"}, "activation": {"format": "uint8", "zero_point": "calibrated"}})j";
const std::string kUnit = R"j(, "gemms": {"fprop": {"unit": "intel.emr.vpdpbusd"}})j";

/// Whether every element is one of the scale's.
bool on_grid(const net::Tensor& x, float scale) {
  return std::ranges::all_of(x.data, [scale](float v) {
    const float k = std::nearbyint(v / scale);
    return v == k * scale && std::fabs(k) <= 255;
  });
}

TEST_CASE("edges: results are rounded once, behind what is fused", "[fast]") {
  const Run run(kRoles + R"j(, "edges": "static")j");
  CHECK(on_grid(run.results.at("relu1"), run.scale("dw").scale));
  CHECK_FALSE(on_grid(run.results.at("conv1"), run.scale("dw").scale));
  CHECK(on_grid(run.results.at("last"), run.scale("fc").scale));
  CHECK(run.scale("left") == run.scale("right"));
  // The scale is that of what the ReLU leaves: the largest element of the calibration samples.
  float largest = 0;
  const net::Graph graph = branches();
  const net::Observer observe = [&](const net::Node& node, const net::Tensor& x) {
    if (node.name == "relu1") largest = std::max(largest, *std::ranges::max_element(x.data));
  };
  net::Numerics float32;
  net::forward(graph, numbers({8, 6, 6, 3}, 11), float32, {}, &observe);
  CHECK(run.scale("dw").scale == Approx(largest / 127).epsilon(1e-6));  // rounded upward

  const Run apart(kRoles + R"j(, "edges": {"rule": "static", "fuse": false})j");
  // The range of the product has negative numbers, too.
  const auto& conv = apart.results.at("conv1");
  CHECK(std::ranges::any_of(conv.data, [](float v) { return v < 0; }));
  std::map<float, int> values;
  for (const float v : conv.data) ++values[v];
  CHECK(values.size() <= 255);
  std::map<float, int> before;
  for (const float v : run.results.at("conv1").data) ++before[v];
  CHECK(before.size() > 255);
}

TEST_CASE("edges: operands of an addition share a scale where they are told to", "[fast]") {
  const auto step_of = [](const net::Tensor& x) {
    float least = HUGE_VALF;
    for (const float a : x.data) {
      for (const float b : x.data) {
        if (a > b) least = std::min(least, a - b);
      }
    }
    return least;
  };
  const auto finest = [&](const std::string& layer, const Run& run) {
    return step_of(run.results.at(layer));
  };
  const Run own(kRoles + R"j(, "edges": "static")j");
  const Run one(kRoles + R"j(, "edges": "static(add=one)")j");
  CHECK(finest("left", own) != Approx(finest("right", own)).epsilon(1e-3));
  CHECK(finest("left", one) == Approx(finest("right", one)).epsilon(1e-3));
  // That of the larger one.
  CHECK(finest("left", one) ==
        Approx(std::max(finest("left", own), finest("right", own))).epsilon(1e-3));
}

/// round(x factor) by the definitions, in products of 128 bits.
__extension__ typedef __int128 Wide;
std::int64_t requantized(const std::string& how, std::int32_t sum, float a, float b, float out) {
  if (how == "float")
    return static_cast<std::int64_t>(std::nearbyint(static_cast<float>(sum) * (a * b / out)));
  int shift = 0;
  const std::int64_t m =
      std::llround(std::frexp(double{a} * double{b} / double{out}, &shift) * 0x1p31);
  const auto shifted = [](Wide x, int e) { return static_cast<std::int64_t>(x >> e); };
  if (how == "fixed-point-single")
    return shifted(Wide{sum} * m + (Wide{1} << (30 - shift)), 31 - shift);
  const std::int64_t high = shifted((Wide{sum} << std::max(shift, 0)) * m + (1 << 30), 31);
  const std::int64_t half = shift < 0 ? std::int64_t{1} << (-shift - 1) : 0;
  const std::int64_t rounded = shift < 0 ? (std::abs(high) + half) >> -shift : std::abs(high);
  return high < 0 ? -rounded : rounded;
}

/// The layer's codes less the zero point, from the numbers that it reads, in integers.
std::vector<float> by_hand(const Run& run, const std::string& layer, const net::Tensor& read,
                           const TensorScale& out, const std::string& how, bool shifted) {
  const auto node = std::ranges::find(run.graph.nodes, layer, &net::Node::name);
  const QuantizedTensor& w = run.numerics->roles().frozen_weight(layer)->codes;
  const float a = run.scale(layer).scale;
  const auto& op = dynamic_cast<const net::Conv&>(*node->op);
  const net::Tensor& bias = op.parameters()[1].value;
  net::Conv2dOptions options;
  const bool first = layer == "conv1", dw = layer == "dw";
  options.in_channels = first ? 3 : 8;
  options.out_channels = first || dw ? 8 : 4;
  options.kernel_height = options.kernel_width = first || dw ? 3 : 1;
  options.pad = dw ? 1 : 0;
  options.groups = dw ? 8 : 1;
  options.bias = false;
  net::Conv2d sums(options);
  for (std::int64_t i = 0; i < sums.parameters()[0].value.size(); ++i)
    sums.parameters()[0].value.data[i] = w.element(i);
  net::Tensor q = read;  // (q - z): whole numbers below 2^24 have exact sums
  for (float& v : q.data) v = std::nearbyint(v / a);
  const net::Shape shapes[] = {q.shape};
  net::Tensor d(sums.output_shape(shapes));
  net::Numerics float32;
  const net::Tensor* const inputs[] = {&q};
  sums.forward({.layer = "sums", .numerics = float32}, inputs, d);
  std::vector<float> all;
  const std::int64_t channels = options.out_channels;
  for (std::int64_t i = 0; i < d.size(); ++i) {
    const std::int64_t c = i % channels;
    const float b = w.scales[w.scales.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    const auto added =
        static_cast<std::int32_t>(std::nearbyint(double{bias.data[c]} / (double{a} * double{b})));
    const auto sum = static_cast<std::int32_t>(d.data[i]) + added;
    const std::int64_t code = requantized(how, sum, a, b, out.scale) + out.zero_point;
    const std::int64_t held = shifted ? std::clamp<std::int64_t>(code, 0, 255)
                                      : std::clamp<std::int64_t>(code, -127, 127);
    all.push_back(static_cast<float>(held - out.zero_point) * out.scale);
  }
  return all;
}

TEST_CASE("edges: codes of products are those of integers alone", "[fast]") {
  for (const bool shifted : {false, true}) {
    for (const std::string how : {"float", "fixed-point-single", "fixed-point-double"}) {
      INFO(how << (shifted ? ", zero points" : ""));
      const std::string unit =
          shifted ? kUnit : R"j(, "gemms": {"fprop": {"unit": "intel.emr.tdpbssd"}})j";
      const Run run((shifted ? kShifted : kRoles) + unit +
                    R"j(, "edges": {"rule": "static", "requantize": ")j" + how + R"j("})j");
      net::Tensor input = run.batch;
      // The input is rounded where it is read.
      const TensorScale in = run.scale("conv1");
      for (float& v : input.data) {
        const float code = std::nearbyint(v / in.scale) + static_cast<float>(in.zero_point);
        v = (std::clamp(code, shifted ? 0.0f : -127.0f, shifted ? 255.0f : 127.0f) -
             static_cast<float>(in.zero_point)) *
            in.scale;
      }
      const auto same = [&](const std::string& layer, const net::Tensor& read,
                            const TensorScale& out) {
        const std::vector<float> expected = by_hand(run, layer, read, out, how, shifted);
        const auto& found = run.results.at(layer).data;
        REQUIRE(found.size() == expected.size());
        std::int64_t differ = 0, zeros = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          differ += found[i] != expected[i];
          zeros += found[i] == 0;
        }
        CHECK(differ == 0);
        CHECK(zeros < static_cast<std::int64_t>(expected.size()) * 3 / 4);  // half are negative
      };
      same("conv1", input, run.scale("dw"));
      same("dw", run.results.at("relu1"), run.scale("left"));
      // What is bounded behind the codes stays on the grid.
      CHECK(on_grid(run.results.at("relu2"), run.scale("left").scale));
    }
  }
}

TEST_CASE("edges: scales that are powers of two, of activations and of weight channels", "[fast]") {
  const Run run(
      R"j("roles": {"weight": {"format": "int8", "granularity": "channel", "scale": "pow2(absmax,up)"},
                              "activation": {"format": "int8", "scale": "pow2(absmax,up)"}},
                   "gemms": {"fprop": {"unit": "intel.emr.tdpbssd"}},
                   "edges": {"rule": "static", "add": "one", "requantize": "fixed-point-single"})j");
  const auto is_power = [](float x) {
    int e = 0;
    return std::frexp(x, &e) == 0.5f;
  };
  const StaticScales scales = run.numerics->roles().static_scales();
  CHECK(scales.size() == 5);
  for (const auto& [layer, scale] : scales) {
    INFO(layer);
    CHECK(is_power(scale.scale));
    const std::vector<float>& weights = run.numerics->roles().frozen_weight(layer)->codes.scales;
    CHECK(weights.size() == (layer == "fc" ? 5u : layer == "left" || layer == "right" ? 4u : 8u));
    CHECK(std::ranges::all_of(weights, is_power));
  }
}

TEST_CASE("edges: ranges of a layer are those of the tensor that it reads", "[fast]") {
  const auto ranges = [](const std::string& left, const std::string& right,
                         const std::string& options = "") {
    return R"j(, "edges": "static)j" + options +
           R"j(", "ranges": {"conv1": {"activation": [-1, 1]}, "dw": {"activation": [0, 0.5]},
                             "left": {"activation": )j" +
           left + R"j(}, "right": {"activation": )j" + right + "}}";
  };
  // Two readers of one tensor: the range that holds both.
  const Run run(kRoles + ranges("[0, 1.25]", "[0, 1]"));
  CHECK(run.scale("conv1").scale == Approx(1.0f / 127).epsilon(1e-6));
  CHECK(run.scale("dw").scale == Approx(0.5f / 127).epsilon(1e-6));
  CHECK(run.scale("left") == run.scale("right"));
  CHECK(run.scale("left").scale == Approx(1.25f / 127).epsilon(1e-6));
  const net::Tensor& relu1 = run.results.at("relu1");
  CHECK(on_grid(relu1, run.scale("dw").scale));
  CHECK(*std::ranges::max_element(relu1.data) == Approx(0.5f).epsilon(1e-6));
  // What no range is of is calibrated, as without ranges.
  CHECK(run.scale("fc") == Run(kRoles + R"j(, "edges": "static")j").scale("fc"));
  // 255 steps of 0.01, from 0 and from -1.27 on: 382 steps together.
  const Run shifted(kShifted + ranges("[0, 2.55]", "[-1.27, 1.28]"));
  CHECK(shifted.scale("left") == shifted.scale("right"));
  CHECK(shifted.scale("left").scale == Approx(3.82f / 255).epsilon(1e-3));
  CHECK(shifted.scale("left").zero_point == 85);
  // A range belongs to what is read, not to the operands of the sum of the results.
  CHECK(Run(kRoles + ranges("[0, 1.25]", "[0, 1]", "(one)")).scale("left") == run.scale("left"));
}

/// The smallest float32 whose 127th multiple reaches the magnitude.
float reaching(double magnitude) {
  auto scale = static_cast<float>(magnitude / 127);
  while (double{scale} * 127 < magnitude) scale = std::nextafter(scale, HUGE_VALF);
  while (double{std::nextafter(scale, 0.0f)} * 127 >= magnitude)
    scale = std::nextafter(scale, 0.0f);
  return scale;
}

std::int64_t code_of(float x, float scale) {
  return std::clamp<std::int64_t>(std::llrint(x / scale), -127, 127);
}

/// The small network of steps in whole numbers, from weights and ranges of its checkpoint alone.
struct WholeNumbers {
  const Tuning& tuning;
  std::string how;

  const net::Tensor& parameter(const std::string& name) const {
    for (const net::Parameter* p : tuning.graph.parameters())
      if (p->name == name) return p->value;
    throw Error(name);
  }
  float scale(const std::string& layer) const {
    const ValueRange range = tuning.ranges.at(layer).activation.value();
    return reaching(std::max(std::fabs(range.low), std::fabs(range.high)));
  }
  float weight_scale(const std::string& layer, std::int64_t channel) const {
    const auto found = tuning.ranges.find(layer);
    if (found != tuning.ranges.end() && !found->second.weight.empty()) {
      const ValueRange& range = found->second.weight[static_cast<std::size_t>(channel)];
      return reaching(std::max(std::fabs(range.low), std::fabs(range.high)));
    }
    const net::Tensor& w = parameter(layer + ".weight");
    const std::int64_t each = w.size() / w.dim(0);
    float largest = 0;
    for (std::int64_t i = 0; i < each; ++i)
      largest = std::max(largest, std::fabs(w.data[channel * each + i]));
    return reaching(largest);
  }
  /// Codes of codes [h, w, in] by a 3 x 3 window with a border of zeros, or of [in].
  std::vector<std::int64_t> product(const std::string& layer, const std::vector<std::int64_t>& x,
                                    std::int64_t size, float in, float out, bool relu) const {
    const net::Tensor &w = parameter(layer + ".weight"), &bias = parameter(layer + ".bias");
    const std::int64_t channels = w.dim(0), taps = size > 1 ? 3 : 1;
    const std::int64_t depth = w.size() / channels / (taps * taps);
    std::vector<std::int64_t> codes;
    for (std::int64_t place = 0; place < size * size; ++place) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float scale = weight_scale(layer, c);
        std::int64_t sum = std::llrint(double{bias.data[c]} / (double{in} * double{scale}));
        for (std::int64_t t = 0; t < taps * taps; ++t) {
          const std::int64_t row = place / size + t / taps - taps / 2;
          const std::int64_t column = place % size + t % taps - taps / 2;
          if (row < 0 || row >= size || column < 0 || column >= size) continue;
          for (std::int64_t k = 0; k < depth; ++k)
            sum += x[static_cast<std::size_t>((row * size + column) * depth + k)] *
                   code_of(w.data[(c * taps * taps + t) * depth + k], scale);
        }
        const std::int64_t code = requantized(how, static_cast<std::int32_t>(sum), in, scale, out);
        codes.push_back(std::clamp<std::int64_t>(code, relu ? 0 : -127, 127));
      }
    }
    return codes;
  }
};

TEST_CASE("edges: a tuned network gives the bits of whole numbers", "[fast]") {
  for (const std::string how : {"float", "fixed-point-single", "fixed-point-double"}) {
    INFO(how);
    const Recipe recipe =
        Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + kRoles +
                               R"j(, "gemms": {"fprop": {"unit": "intel.emr.tdpbssd"}},
                "edges": {"rule": "static", "requantize": ")j" +
                               how + R"j("}})j",
                           "r.json");
    Tuning tuning = policies::test::small_tuning(recipe);
    const auto before = policies::test::tuned_numbers(tuning);
    policies::test::run_steps(
        "calibrate(percentile(99)),adaquant(iterations=5,weight_rate=0.001,range_rate=0.01,"
        "activation_rate=0.01),bias_correction,batch_norm",
        tuning);
    CHECK(policies::test::tuned_numbers(tuning) != before);
    const auto numerics = tuned_numerics(tuning);
    Recorder recorder(*numerics);
    const std::int64_t samples = 6, size = 5;
    const auto batch = tuning.calibration.batch(0, samples);
    net::forward(tuning.graph, batch, recorder, CalibrationStep(0, samples));

    // Tensors without a range have the largest element of the tuned network on all samples.
    std::map<std::string, float> largest;
    const net::Observer observe = [&](const net::Node& node, const net::Tensor& x) {
      for (const float v : x.data) largest[node.name] = std::max(largest[node.name], std::fabs(v));
    };
    net::Numerics float32;
    net::forward(tuning.graph, tuning.calibration.batch(0, tuning.calibration.samples), float32, {},
                 &observe);

    const WholeNumbers whole{tuning, how};
    const float s1 = whole.scale("conv1"), s2 = whole.scale("conv2"), s3 = whole.scale("fc");
    const float behind = reaching(largest.at("relu2")), out = reaching(largest.at("fc"));
    const auto differ = [&](const std::string& layer, std::int64_t sample,
                            const std::vector<std::int64_t>& codes, float scale) {
      const auto& found = recorder.results.at(layer).data;
      const auto n = static_cast<std::int64_t>(codes.size());
      std::int64_t count = 0, zeros = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        count += found[static_cast<std::size_t>(sample * n + i)] !=
                 static_cast<float>(codes[static_cast<std::size_t>(i)]) * scale;
        zeros += codes[static_cast<std::size_t>(i)] == 0;
      }
      CHECK(zeros < n);
      return count;
    };
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      std::vector<std::int64_t> x;
      for (std::int64_t i = 0; i < size * size * 4; ++i)
        x.push_back(
            code_of(batch[0].data[static_cast<std::size_t>(sample * size * size * 4 + i)], s1));
      const auto first = whole.product("conv1", x, size, s1, s2, true);
      CHECK(differ("relu1", sample, first, s2) == 0);
      const auto second = whole.product("conv2", first, size, s2, behind, true);
      CHECK(differ("relu2", sample, second, behind) == 0);
      std::vector<std::int64_t> means;
      for (std::int64_t c = 0; c < 6; ++c) {
        double sum = 0;  // of 25 numbers of 24 bits: exact
        for (std::int64_t i = 0; i < size * size; ++i)
          sum += double{static_cast<float>(second[static_cast<std::size_t>(6 * i + c)]) * behind};
        means.push_back(code_of(static_cast<float>(sum / 25), s3));
      }
      CHECK(differ("pool", sample, means, s3) == 0);
      CHECK(differ("fc", sample, whole.product("fc", means, 1, s3, out, false), out) == 0);
    }
  }
}

TEST_CASE("edges: what a recipe may not say", "[fast]") {
  CHECK(parsed(R"j("edges": "static(one)")j")["edges"].dump() ==
        R"({"rule":"static","add":"one","concat":"own","fuse":true,"requantize":"none"})");
  CHECK_THAT(refused(R"j("edges": "dynamic")j"), Contains("edges") && Contains("static"));
  CHECK_THAT(refused(R"j("edges": {"rule": "static", "add": "two"})j"), Contains("edges.add"));
  const std::string fixed =
      R"j(, "edges": {"rule": "static", "requantize": "fixed-point-single"})j";
  const auto why = [](const std::string& keys) -> std::string {
    return numemu::test::message_of([&] { const Run run(keys); });
  };
  for (
      const auto& [keys, message] : std::vector<std::pair<std::string, std::string>>{
          {R"j("edges": "static")j", "static: expected a result with a role activation"},
          {kRoles + R"j(, "calibrate": {"rule": "dynamic"}, "edges": "static")j",
           "roles.activation: expected one static scale"},
          {R"j("roles": {"activation": {"format": "mxfp8_e4m3"}}, "edges": "static")j",
           "roles.activation: expected one static scale"},
          {R"j("roles": {"activation": {"format": "int8", "rounding": "sr(8)"}}, "edges": "static")j",
           "roles.activation.rounding: expected one without random bits"},
          {kRoles +
               R"j(, "edges": "static(one)", "layers": [{"match": "left", "roles": {"activation": {"format": "int4"}}}])j",
           "layer right: roles.activation: expected that of left, with which it shares a scale"},
          {kRoles +
               R"j(, "edges": "static", "layers": [{"match": "left", "transform": "hadamard(8)"}])j",
           "layer left: transform: expected null"},
          {kRoles + fixed, "layer conv1: edges.requantize: expected a unit with int32 results"},
          {kRoles + kUnit + fixed, "uint8"},
          {kShifted + kUnit + fixed +
               R"j(, "layers": [{"match": "fc", "roles": {"activation": null, "weight": null}, "gemms": {"fprop": {"unit": "exact"}}}])j",
           "layer fc: edges.requantize: expected a result that edges quantize"},
          {kShifted + kUnit + fixed +
               R"j(, "layers": [{"match": "conv1", "roles": {"output": {"format": "bfloat16", "scale": "none"}}}])j",
           "layer conv1: edges.requantize: expected no role output"}}) {
    INFO(keys);
    CHECK_THAT(why(keys), Contains(message));
  }
  const net::Graph graph = branches();
  const RecipeNumerics numerics(
      Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + kRoles + R"j(, "edges": "static"})j",
                         "r.json"),
      graph, "r.json");
  CHECK_THROWS_WITH(numerics.require_trainable("r.json"),
                    Contains("r.json: edges: serves inference alone"));
}

TEST_CASE("edges: a batch normalisation is fused, but not with codes that integers make",
          "[fast]") {
  net::Builder b("norm", {4, 4, 3}, 5);
  b.conv3x3("conv", 4).batch_norm("bn").relu("relu").flatten("flat").classifier("fc");
  net::Graph graph = b.take();
  net::initialize(graph, 1);
  const auto bind = [&](const std::string& more) {
    RecipeNumerics numerics(
        Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + kShifted + kUnit + more + "}", "r.json"),
        graph, "r.json");
  };
  CHECK_NOTHROW(bind(R"j(, "edges": "static")j"));
  CHECK_THROWS_WITH(bind(R"j(, "edges": {"rule": "static", "requantize": "float"})j"),
                    Contains("layer conv: edges.requantize: expected no batch_norm between product "
                             "and codes"));
}

}  // namespace numemu::static_test
