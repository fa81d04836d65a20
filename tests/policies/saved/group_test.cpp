// Saved group: codes by hand, the mean and the variance of what comes back and of the gradients,
// the bytes kept, what stays exact.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "policies/bits/sample_bits.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/state_bytes.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/update/two_layers.hpp"

namespace group_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

constexpr double kErrors = 4;  // standard errors: 1 - 6e-5 of a normal law

net::Graph one_layer(std::int64_t width, std::int64_t outputs) {
  net::Graph graph;
  graph.name = "one";
  graph.inputs = {{"input", {width}}};
  graph.add("fc", std::make_unique<net::Linear>(width, outputs), {0});
  graph.add("relu", std::make_unique<net::Pointwise>("relu"));
  net::initialize(graph, 0);
  return graph;
}

Recipe recipe_of(const std::string& keys) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r");
}

net::Step step_of(std::int64_t index) { return {net::Phase::training, index, nullptr}; }

net::SharedTensor shared(net::Shape shape, std::vector<float> data) {
  net::Tensor x(std::move(shape));
  x.data = std::move(data);
  return std::make_shared<const net::Tensor>(std::move(x));
}

/// What is kept, and what comes back of it.
struct Kept {
  net::Saved saved;
  std::vector<float> back;
};
Kept keep(net::Numerics& numerics, const net::SharedTensor& x, std::int64_t step,
          net::Use use = net::Use::linear, const char* layer = "fc") {
  Kept kept{numerics.save(step_of(step), {layer, use}, x), {}};
  kept.back = numerics.restore(step_of(step), {layer, use}, kept.saved)->data;
  return kept;
}

/// The closed form: s^2 f (1 - f), f the fractional part of (x - minimum) / s, with s the range
/// over the largest code rounded upward to bfloat16; and the variance of the squared error.
struct Spread {
  std::vector<double> variance, of_square;
};
Spread law_of(const std::vector<float>& x, std::size_t group, int bits) {
  Spread law;
  for (std::size_t first = 0; first < x.size(); first += group) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = x.begin() + static_cast<std::ptrdiff_t>(std::min(first + group, x.size()));
    const auto [low, high] = std::minmax_element(begin, end);
    const double range = double{*high} - *low, wanted = range / ((1 << bits) - 1);
    auto word = std::bit_cast<std::uint32_t>(static_cast<float>(wanted)) & 0xffff0000u;
    while (std::bit_cast<float>(word) < wanted) word += 0x10000u;
    const double s = std::bit_cast<float>(word);
    for (auto i = begin; i != end; ++i) {
      const double steps = (double{*i} - *low) / s, f = steps - std::floor(steps), v = f * (1 - f);
      law.variance.push_back(s * s * v);
      law.of_square.push_back(s * s * s * s * v * (1 - 4 * v));
    }
  }
  return law;
}

}  // namespace

TEST_CASE("saved group: a sample's groups have their own minimum and range", "[fast]") {
  const net::Graph graph = one_layer(4, 2);
  RecipeNumerics numerics(recipe_of(R"j("saved": {"format": "uint2", "group": 4})j"), graph);
  // On the grid nothing is drawn.
  const net::SharedTensor exact = shared({2, 6}, {0, 1, 2, 3, 5, 5, -6, -4, -2, 0, 0, 9});
  for (int step = 0; step < 8; ++step) CHECK(keep(numerics, exact, step).back == exact->data);
  // Of 0, 0.5, 1, 3 one element lies between codes: its variance is 1/4.
  const net::SharedTensor x = shared({1, 4}, {0, 0.5f, 1, 3});
  int up = 0;
  for (int step = 0; step < 400; ++step) {
    const std::vector<float> back = keep(numerics, x, step).back;
    CHECK((back[0] == 0 && back[2] == 1 && back[3] == 3));
    CHECK((back[1] == 0 || back[1] == 1));
    up += back[1] == 1;
  }
  CHECK(std::abs(up - 200) < kErrors * 10);
}

TEST_CASE("saved group: what comes back is unbiased and has the closed form's variance", "[fast]") {
  constexpr int kSteps = 400;
  const net::Graph graph = one_layer(600, 2);
  for (const int bits : {2, 3, 4}) {
    CAPTURE(bits);
    RecipeNumerics numerics(recipe_of(R"j("saved": {"format": "uint)j" + std::to_string(bits) +
                                      R"j(", "group": 256})j"),
                            graph);
    const net::SharedTensor x = std::make_shared<const net::Tensor>(noise({2, 600}, 5));
    const std::vector<float> first(x->data.begin(), x->data.begin() + 600),
        second(x->data.begin() + 600, x->data.end());
    Spread law = law_of(first, 256, bits);
    const Spread rest = law_of(second, 256, bits);
    law.variance.insert(law.variance.end(), rest.variance.begin(), rest.variance.end());
    law.of_square.insert(law.of_square.end(), rest.of_square.begin(), rest.of_square.end());
    double error = 0, square = 0, projected = 0;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> back = keep(numerics, x, step).back;
      for (std::size_t i = 0; i < back.size(); ++i) {
        const double e = double{back[i]} - x->data[i];
        error += e;
        projected += e * x->data[i];
        square += e * e;
      }
    }
    double variance = 0, of_square = 0, of_projected = 0;
    for (std::size_t i = 0; i < law.variance.size(); ++i) {
      variance += law.variance[i];
      of_square += law.of_square[i];
      of_projected += law.variance[i] * x->data[i] * x->data[i];
    }
    CHECK(std::abs(error) < kErrors * std::sqrt(kSteps * variance));
    CHECK(std::abs(projected) < kErrors * std::sqrt(kSteps * of_projected));
    CHECK(std::abs(square - kSteps * variance) < kErrors * std::sqrt(kSteps * of_square));
  }
}

TEST_CASE("saved group: the gradient of a linear layer has the variance of its contexts",
          "[fast]") {
  constexpr int kSteps = 300;
  constexpr std::int64_t kSamples = 8, kWidth = 64, kOutputs = 3;
  net::Graph graph;
  graph.name = "one";
  graph.inputs = {{"input", {kWidth}}};
  graph.add("fc", std::make_unique<net::Linear>(kWidth, kOutputs), {0});
  const net::Tensor x = noise({kSamples, kWidth}, 9);
  RecipeNumerics numerics(recipe_of(R"j("saved": {"format": "uint2", "group": 32})j"), graph);
  net::Numerics plain;
  const net::Tensor g = noise({kSamples, kOutputs}, 77);
  const auto weight_gradient = [&](net::Numerics& n, int step) {
    net::Tape tape = net::forward_training(graph, x, n, step_of(step));
    return net::backward(graph, std::move(tape), g, n).at(0).data;
  };
  const std::vector<float> exact = weight_gradient(plain, 0);
  // sum over samples of |g|^2 times the variance of its context, which is the network's input.
  double expected = 0, error = 0;
  for (std::int64_t n = 0; n < kSamples; ++n) {
    double norm = 0, variance = 0;
    for (std::int64_t o = 0; o < kOutputs; ++o) norm += std::pow(g.data[n * kOutputs + o], 2);
    const auto begin = x.data.begin() + n * kWidth;
    for (const double v : law_of({begin, begin + kWidth}, 32, 2).variance) variance += v;
    expected += norm * variance;
  }
  std::vector<double> squares;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float> noisy = weight_gradient(numerics, step);
    double square = 0;
    for (std::size_t i = 0; i < noisy.size(); ++i) {
      square += std::pow(double{noisy[i]} - exact[i], 2);
      error += double{noisy[i]} - exact[i];
    }
    squares.push_back(square);
  }
  double mean = 0, spread = 0;
  for (const double s : squares) mean += s / kSteps;
  for (const double s : squares) spread += (s - mean) * (s - mean) / (kSteps - 1);
  CHECK(std::abs(mean - expected) < kErrors * std::sqrt(spread / kSteps));
  // The elements of a column share their draws: at most kOutputs times the independent variance.
  CHECK(std::abs(error) < kErrors * std::sqrt(kSteps * kOutputs * expected));
}

TEST_CASE("saved group: signs, indices and statistics stay exact", "[fast]") {
  const net::Graph graph = one_layer(600, 2);
  RecipeNumerics numerics(recipe_of(R"j("saved": "group")j"), graph);
  const net::SharedTensor x = std::make_shared<const net::Tensor>(noise({2, 600}, 5));
  const Kept signs = keep(numerics, x, 0, net::Use::sign, "relu");
  for (std::size_t i = 0; i < x->data.size(); ++i) CHECK((signs.back[i] > 0) == (x->data[i] > 0));
  CHECK(signs.saved.packed.size() == 2 * 600 * 2 / 8);
  // Behind a ReLU none is negative.
  net::Tensor rectified = *x;
  for (float& v : rectified.data) v = std::max(v, 0.0f);
  const Kept positive =
      keep(numerics, std::make_shared<const net::Tensor>(rectified), 0, net::Use::sign, "relu");
  for (std::size_t i = 0; i < rectified.data.size(); ++i)
    CHECK(positive.back[i] == (rectified.data[i] > 0 ? 1 : 0));
  CHECK(positive.saved.packed.size() == 2 * 600 / 8);
  for (const net::Use use : {net::Use::index, net::Use::statistic})
    CHECK(keep(numerics, x, 0, use).saved.tensor == x);
}

TEST_CASE("saved group: bytes are those of codes, scales and minima", "[fast]") {
  const net::Graph graph = one_layer(600, 2);
  RecipeNumerics numerics(recipe_of(R"j("saved": {"format": "uint3", "group": 256})j"), graph);
  const net::SharedTensor x = std::make_shared<const net::Tensor>(noise({2, 600}, 5));
  const Kept kept = keep(numerics, x, 3);
  CHECK(kept.saved.tensor == nullptr);
  CHECK(kept.saved.shape == x->shape);
  // 6 groups with 2 + 4 bytes; the packed form of a block format has 4 for its tensor scale.
  CHECK(kept.saved.packed.size() == (2 * 600 * 3 + 7) / 8 + 6 * (2 + 4) + 4);
  // The role of the same format keeps the same bytes: one identity of random bits.
  RecipeNumerics role(recipe_of(R"j("roles": {"saved": {"format": "group(uint3,256,bfloat16,min)",
                                                       "rounding": "sr(16)"}})j"),
                      graph);
  CHECK(keep(role, x, 3).saved.packed == kept.saved.packed);
  CHECK(keep(role, x, 4).saved.packed != kept.saved.packed);
}

TEST_CASE("saved group: minima in bfloat16 lie below, take 2 bytes and change no other element",
          "[fast]") {
  const net::Graph graph = one_layer(600, 2);
  const net::SharedTensor x = std::make_shared<const net::Tensor>(noise({2, 600}, 5));
  // The elements of each group that are its smallest, rounded toward minus infinity.
  net::Tensor lowered = *x;
  for (std::size_t n = 0; n < 2; ++n) {
    for (const auto& [first, last] :
         {std::pair(0, 256), std::pair(256, 512), std::pair(512, 600)}) {
      const auto least = std::min_element(lowered.data.begin() + 600 * n + first,
                                          lowered.data.begin() + 600 * n + last);
      const float ulp = std::ldexp(1.0f, std::ilogb(*least) - 7);
      *least = std::floor(*least / ulp) * ulp;
    }
  }
  CHECK(lowered.data != x->data);
  const auto lower = std::make_shared<const net::Tensor>(lowered);
  for (const char* bits : {R"j("format": "uint3")j", R"j("bits": "greedy(2)")j"}) {
    INFO(bits);
    const auto numerics_of = [&](const char* minimum) {
      return RecipeNumerics(
          recipe_of(
              fmt::format(R"j("saved": {{"group": 256, "minimum": "{}", {}}})j", minimum, bits)),
          graph);
    };
    RecipeNumerics whole = numerics_of("float32"), half = numerics_of("bfloat16");
    const Kept expected = keep(whole, lower, 3, net::Use::linear, "input"),
               kept = keep(half, x, 3, net::Use::linear, "input");
    CHECK(kept.back == expected.back);
    CHECK(kept.saved.packed.size() + 6 * 2 == expected.saved.packed.size());
  }
}

TEST_CASE("saved group: canonical form, layers, refusals", "[fast]") {
  const Json usual =
      parse_json(R"j({"rule": "group", "format": "uint2", "group": 256, "bits": "fixed",
                      "minimum": "float32"})j",
                 "t");
  for (const char* text :
       {R"j("saved": "group")j", R"j("saved": {"rule": "group"})j", R"j("saved": {"group": 256})j",
        R"j("saved": {"format": "uint2", "group": 256, "bits": "fixed"})j"}) {
    INFO(text);
    const Json json = recipe_of(text).json();
    CHECK(json["saved"] == usual);
    CHECK(json["roles"]["saved"].is_null());
    CHECK(Recipe::parse(json, "again").json() == json);
  }
  // What was a role stays one.
  const Json role = recipe_of(R"j("saved": {"format": "int8"})j").json();
  CHECK_FALSE(role.contains("saved"));
  CHECK(role["roles"]["saved"]["format"] == "int8");

  const net::Graph graph = one_layer(4, 2);
  RecipeNumerics numerics(
      recipe_of(R"j("saved": "group", "layers": [{"match": "fc", "saved": null}])j"), graph);
  const net::SharedTensor x = shared({1, 4}, {0, 0.5f, 1, 3});
  CHECK(keep(numerics, x, 0).saved.tensor == x);
  CHECK(keep(numerics, x, 0, net::Use::linear, "relu").saved.tensor == nullptr);

  CHECK(recipe_of(R"j("saved": {"bits": "greedy( 2.50 )"})j").json()["saved"]["bits"] ==
        "greedy(2.5)");
  for (const char* bits : {"greedy(0.5)", "greedy(9)", "greedy", "exact(2)"})
    CHECK_THROWS_WITH(
        recipe_of(fmt::format(R"j("saved": {{"bits": "{}"}})j", bits)),
        Contains("r: saved.bits: ") && Contains(bits) && Contains("expected fixed, or greedy(B)"));
  CHECK_THROWS_WITH(
      RecipeNumerics(recipe_of(R"j("saved": {"format": "uint4", "bits": "greedy(2)"})j"), graph),
      Contains("format uint4 contradicts bits greedy(2)"));
  CHECK_THROWS_WITH(recipe_of(R"j("saved": {"rule": "grup"})j"), Contains("did you mean 'group'"));
  CHECK_THROWS_WITH(recipe_of(R"j("saved": {"group": 0})j"), Contains("r: saved.group: "));
  CHECK_THROWS_WITH(
      RecipeNumerics(recipe_of(R"j("saved": "group", "roles": {"saved": {"format": "int8"}})j"),
                     graph),
      Contains("recipe: saved: group contradicts roles.saved of layer "));
}

namespace {

constexpr std::int64_t kEach = 64;  // elements of a sample of the network below

/// Sample n spans a range of 4^n.
net::SharedTensor spread(std::int64_t samples, std::int64_t each) {
  net::Tensor x = noise({samples, each}, 3);
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[static_cast<std::size_t>(i)] =
        std::ldexp(x.data[static_cast<std::size_t>(i)], static_cast<int>(2 * (i / each)));
  return std::make_shared<const net::Tensor>(std::move(x));
}

double range_square(const std::vector<float>& x, std::size_t first, std::size_t count) {
  const auto [low, high] =
      std::minmax_element(x.begin() + static_cast<std::ptrdiff_t>(first),
                          x.begin() + static_cast<std::ptrdiff_t>(first + count));
  const double range = double{*high} - *low;
  return static_cast<double>(count) * range * range / 4;
}

/// One training step; what is kept of both contexts.
std::vector<std::vector<std::uint8_t>> step(RecipeNumerics& numerics, const net::Graph& graph,
                                            std::int64_t index) {
  const net::Step now = step_of(index);
  numerics.begin_step(now);
  net::Tape tape = net::forward_training(graph, *spread(4, kEach), numerics, now);
  std::vector<std::vector<std::uint8_t>> packed;
  for (const int value : {0, 1})
    packed.push_back(
        tape.values[static_cast<std::size_t>(value)][static_cast<std::size_t>(net::Use::linear)]
            .packed);
  net::backward(graph, std::move(tape), noise({4, 3}, 8), numerics);
  numerics.end_step(now);
  return packed;
}

double state_of(const RecipeNumerics& numerics, const std::string& value) {
  net::NamedState state;
  numerics.save_state(state);
  for (const auto& [name, bytes] : state)
    if (name == "recipe/saved/group/bits/" + value) return double_of(from_bytes(name, bytes)[0]);
  return 0;
}

}  // namespace

TEST_CASE("saved group: greedy bits by the ranges of samples, unbiased", "[fast]") {
  constexpr int kSteps = 300;
  constexpr std::int64_t kSamples = 4;
  const net::Graph graph = two_layers(kEach, kEach / 4, 3);
  RecipeNumerics numerics(recipe_of(R"j("saved": {"group": 32, "bits": "greedy(2)"})j"), graph);
  const net::SharedTensor x = spread(kSamples, kEach);
  std::vector<BitItem> items;
  for (std::size_t n = 0; n < kSamples; ++n)
    items.push_back(
        {range_square(x->data, n * kEach, 32) + range_square(x->data, n * kEach + 32, 32)});
  const std::vector<int> bits = greedy_bits(items, 2 * kSamples);
  CHECK(bits.front() < bits.back());
  double error = 0, square = 0, variance = 0, of_square = 0;
  for (std::size_t n = 0; n < kSamples; ++n) {
    const auto first = x->data.begin() + static_cast<std::ptrdiff_t>(n * kEach);
    const Spread law = law_of({first, first + kEach}, 32, bits[n]);
    for (std::size_t i = 0; i < law.variance.size(); ++i) {
      variance += law.variance[i];
      of_square += law.of_square[i];
    }
  }
  std::size_t bytes = 0;
  for (int index = 0; index < kSteps; ++index) {
    const Kept kept = keep(numerics, x, index, net::Use::linear, "input");
    for (std::size_t n = 0; n < kSamples; ++n) CHECK(kept.saved.packed[n] == bits[n]);
    for (std::size_t i = 0; i < kept.back.size(); ++i) {
      const double e = double{kept.back[i]} - x->data[i];
      error += e;
      square += e * e;
    }
    bytes = kept.saved.packed.size();
  }
  CHECK(std::abs(error) < kErrors * std::sqrt(kSteps * variance));
  CHECK(std::abs(square - kSteps * variance) < kErrors * std::sqrt(kSteps * of_square));
  // Codes; a scale and a minimum for 2 groups of each sample; a byte for its bits; for each number
  // of bits that occurs a length of 8 bytes, and the 4 of the packed form.
  std::size_t expected = kSamples + kSamples * 2 * 6;
  for (int b = 1; b <= kMostItemBits; ++b) {
    const auto count = static_cast<std::size_t>(std::count(bits.begin(), bits.end(), b));
    if (count > 0) expected += 8 + 4 + count * kEach * static_cast<std::size_t>(b) / 8;
  }
  CHECK(bytes == expected);
}

TEST_CASE("saved group: greedy bits of layers follow ranges and gradients", "[fast]") {
  const net::Graph graph = two_layers(kEach, kEach / 4, 3);
  RecipeNumerics numerics(recipe_of(R"j("saved": {"group": 16, "bits": "greedy(3)"})j"), graph);
  CHECK(state_of(numerics, "input") == 3);
  step(numerics, graph, 0);
  // The same by hand: float32 contexts and gradients, the layers' weights as in the policy.
  net::Numerics plain;
  const net::SharedTensor x = spread(4, kEach);
  const net::Tensor g = noise({4, 3}, 8);
  const auto& weight = graph.parameters()[2]->value.data;  // fc2 [3, 16]
  const net::Tape tape = net::forward_training(graph, *x, plain, step_of(0));
  const net::Tensor& h = *tape.values[1][static_cast<std::size_t>(net::Use::linear)].tensor;
  double s1 = 0, s2 = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    for (std::size_t o = 0; o < 3; ++o) s2 += std::pow(g.data[n * 3 + o], 2) / 4;
    for (std::size_t i = 0; i < kEach / 4; ++i) {
      double back = 0;
      for (std::size_t o = 0; o < 3; ++o)
        back += double{g.data[n * 3 + o]} * weight[o * (kEach / 4) + i];
      s1 += back * back / 4;
    }
  }
  std::vector<BitItem> items;
  for (std::size_t n = 0; n < 4; ++n) {
    double c = 0;
    for (std::size_t i = 0; i < kEach; i += 16) c += range_square(x->data, n * kEach + i, 16);
    items.push_back({c * s1, kEach});
  }
  for (std::size_t n = 0; n < 4; ++n)
    items.push_back({range_square(h.data, n * kEach / 4, kEach / 4) * s2, kEach / 4});
  // In the order of names: fc1 is the name of the second context.
  std::vector<BitItem> by_name(items.begin() + 4, items.end());
  by_name.insert(by_name.end(), items.begin(), items.begin() + 4);
  const std::vector<int> bits = greedy_bits(by_name, 3 * 4 * (kEach + kEach / 4));
  const auto mean = [&](int first) {
    return (bits[first] + bits[first + 1] + bits[first + 2] + bits[first + 3]) / 4.0;
  };
  CHECK(state_of(numerics, "fc1") == mean(0));
  CHECK(state_of(numerics, "input") == mean(4));
  CHECK(mean(0) != mean(4));
}

TEST_CASE("saved group: greedy bits survive a restart", "[fast]") {
  const net::Graph graph = two_layers(kEach, kEach / 4, 3);
  const Recipe recipe = recipe_of(R"j("saved": {"group": 16, "bits": "greedy(3)"})j");
  RecipeNumerics numerics(recipe, graph), continued(recipe, graph), fresh(recipe, graph);
  step(numerics, graph, 0);
  net::NamedState state;
  numerics.save_state(state);
  continued.load_state(state);
  const auto expected = step(numerics, graph, 1);
  CHECK(step(continued, graph, 1) == expected);
  CHECK(step(fresh, graph, 1) != expected);
  for (const net::NamedState& bad :
       {net::NamedState{{"recipe/saved/group/bits/input", to_bytes({bits_of(0.5)})}},
        net::NamedState{{"recipe/saved/group/bits/fc7", to_bytes({bits_of(2)})}}})
    CHECK_THROWS_WITH(fresh.load_state(bad),
                      Contains("state " + bad[0].first) && Contains("expected 1 to 8 bits"));
}

}  // namespace group_test
