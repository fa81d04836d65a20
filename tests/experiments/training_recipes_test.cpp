// Training recipes: spikes, the closed form of an operand's noise and of weight gradients, and the
// experiment from settings to conclusion.
#include "experiments/training_recipes/training_recipes.hpp"

#include <cmath>
#include <fstream>
#include <numeric>
#include <utility>

#include "emu/net/nets.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/step.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/numerics/staged_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/small_net.hpp"

namespace training_recipes_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

using namespace training_recipes;

/// Lines of words, enough for a few windows of each split.
std::string text_file(const TemporaryFolder& folder) {
  const std::string file = folder / "words.txt";
  std::ofstream out(file);
  const RandomSource random{.seed = 5};
  for (std::uint64_t i = 0; i < 6000; ++i)
    out << (i % 9 == 8 ? "\n" : std::string(1, static_cast<char>('a' + random.bits(i, 3))));
  return "text:" + file;
}

policies::Recipe recipe(const std::string& keys) {
  return policies::Recipe::parse_text(R"j({"numemu_recipe": 1, )j" + keys + "}", "r");
}

std::vector<float> normal(std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  const RandomSource random{.seed = 3};
  for (std::int64_t i = 0; i < n; ++i) {
    const double u = random.uniform(2 * i), v = random.uniform(2 * i + 1);
    x[i] = static_cast<float>(std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v));
  }
  return x;
}

}  // namespace

TEST_CASE("training recipes: spikes and the first loss that is not finite", "[fast]") {
  const Events none = events_of({4, 3.5, 3.9, 3}, 0.5, 1);
  CHECK(none.spike == -1);
  CHECK(none.not_finite == -1);
  CHECK(events_of({4, 3, 3.51, 2, 9}, 0.5, 1).spike == 2);
  const Events lost = events_of({4, 3, NAN, 9}, 0.5, 1);
  CHECK(lost.spike == -1);
  CHECK(lost.not_finite == 2);
  CHECK(events_of({4, 5, HUGE_VAL}, 0.5, 1).spike == 1);
  // Means of two: 4, 3.5, 3.5, 4.25.
  CHECK(events_of({4, 4, 3, 4, 4.5}, 0.7, 1).spike == 3);
  CHECK(events_of({4, 4, 3, 4, 4.5}, 0.7, 2).spike == 4);
  CHECK(events_of({4, 4, 3, 4, 4.5}, 0.8, 2).spike == -1);
  CHECK(events_of({4, 9}, 0.5, 3).spike == -1);
}

TEST_CASE("training recipes: noise of an operand of normal law", "[fast]") {
  const std::vector<float> x = normal(1 << 19);
  // E[err^2] / E[x^2] of normal numbers with m bits of mantissa, m = 2 and 3. A term of the sum has
  // a spread of about twice its mean, so that 4 standard errors of 2^19 are 1.1 %.
  constexpr double kSample = 0.011;
  const auto noise = [&](const std::string& role) {
    const ElementErrors errors = element_errors(recipe("\"roles\": {\"gradient\": " + role + "}")
                                                    .layer("l")[policies::RolePart::gradient_wgrad],
                                                64, x);
    double error = 0, signal = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      error += errors.square[i];
      signal += double{x[i]} * x[i];
    }
    return error / signal;
  };
  CHECK(noise(R"({"format": "float8_e5m2", "scale": "none"})") ==
        Approx(2.796e-3).epsilon(kSample));
  CHECK(noise(R"({"format": "float8_e4m3fn"})") == Approx(7.033e-4).epsilon(kSample));
  // Stochastic rounding has twice the error of rounding to nearest: f (1 - f) against min(f, 1 -
  // f)^2 over f in [0, 1] is 1/6 against 1/12. Of four-bit floats the cells are few.
  CHECK(noise(R"j({"format": "int8", "rounding": "sr(8)"})j") ==
        Approx(2 * noise(R"({"format": "int8"})")).epsilon(kSample));
  CHECK(noise(R"({"format": "mxfp4"})") > noise(R"({"format": "nvfp4"})"));
  CHECK(element_errors(std::nullopt, 64, x).square == std::vector<double>(x.size(), 0.0));
  // One step of int8 at the scale 1: 0.25 is rounded down, or up one time in four.
  const std::vector<float> numbers = {0.25f, -0.25f, 0.75f, 127};
  const auto errors = [&](const char* rounding) {
    return element_errors(recipe(R"j("roles": {"gradient": {"format": "int8", "rounding": ")j" +
                                 std::string(rounding) + "\"}}")
                              .layer("l")[policies::RolePart::gradient_wgrad],
                          4, numbers);
  };
  CHECK(errors("rne").mean == std::vector<double>{-0.25, 0.25, 0.25, 0});
  CHECK(errors("rne").square == std::vector<double>{0.0625, 0.0625, 0.0625, 0});
  CHECK(errors("sr(8)").mean == std::vector<double>(4, 0.0));
  CHECK(errors("sr(8)").square == std::vector<double>{0.1875, 0.1875, 0.1875, 0});
}

TEST_CASE("training recipes: equal errors of equal gradients are predicted", "[fast]") {
  // At its first step a network gives every sample nearly the same gradient of a logit: to nearest,
  // its errors are nearly equal.
  const net::Dataset data = testing::small_dataset();
  net::Graph graph = net::build_net("mlp", data);
  net::initialize(graph, 1);
  for (net::Parameter* const parameter : graph.parameters()) {
    if (parameter != graph.parameters()[4]) continue;  // of the last layer
    for (float& w : parameter->value.data) w *= 0.1f;
  }
  const GradientNoise n = gradient_noise(
      graph, data, recipe(R"j("roles": {"gradient": {"format": "float8_e5m2"}})j"), 64, 1);
  CHECK(std::fabs(10 * std::log10(n.own / n.predicted)) < 1);
}

TEST_CASE("training recipes: noise of weight gradients is that of the closed form", "[fast]") {
  const net::Dataset data = testing::small_dataset();
  net::Graph graph = net::build_net("mlp", data);
  net::initialize(graph, 1);
  const auto noise = [&](const std::string& keys, std::uint64_t seed) {
    return gradient_noise(graph, data, recipe(keys + R"j(, "seed": )j" + std::to_string(seed)), 16,
                          1);
  };
  const GradientNoise float32 = noise(R"j("transform": null)j", 0);
  CHECK(float32.predicted == 0);
  CHECK(float32.own == 0);
  CHECK(float32.total == 0);
  // Over draws the ratio has a mean of 1, but for the upstream noise of what is multiplied.
  constexpr int kDraws = 40;
  constexpr double kUpstream = 0.03;
  for (
      const char* keys :
      {R"j("roles": {"gradient": {"format": "float8_e5m2", "rounding": "sr(8)"}})j",
       R"j("roles": {"gradient": {"format": "nvfp4", "rounding": "sr(8)"}, "activation": {"format": "float8_e4m3fn", "rounding": "sr(8)"}})j",
       R"j("roles": {"gradient": {"format": "nvfp4", "rounding": "sr(8)"}, "activation": {"format": "nvfp4", "rounding": "sr(8)"}}, "transform": "hadamard-backward(16)")j",
       R"j("roles": {"gradient": {"format": "mxfp8_e4m3", "scale": "ceil", "rounding": "sr(8)"}}, "update": {"loss_scale": "static(1024)"})j"}) {
    INFO(keys);
    double sum = 0, squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const GradientNoise n = noise(keys, static_cast<std::uint64_t>(draw));
      CHECK(n.total > 0);
      sum += n.own / n.predicted;
      squares += n.own / n.predicted * n.own / n.predicted;
    }
    const double mean = sum / kDraws;
    const double error = std::sqrt((squares / kDraws - mean * mean) / (kDraws - 1));
    INFO(mean << " +- " << error);
    CHECK(std::fabs(mean - 1) < 4 * error + kUpstream);
    CHECK(error < 0.15);
  }
}

TEST_CASE("training recipes: shipped recipes train the transformer", "[fast]") {
  const std::string data = NUMEMU_SOURCE "/data";
  const net::Graph graph = net::build_net("char-transformer", {64}, 65);
  const std::vector<std::string> training = shipped_recipes(data, true),
                                 inference = shipped_recipes(data, false);
  std::size_t listed = 0;
  const std::string page = read_text(NUMEMU_SOURCE "/docs/recipes.md"), list = kRecipes;
  for (const std::string& name : training) {
    if (std::find(inference.begin(), inference.end(), name) != inference.end()) continue;
    INFO(name);
    const std::string file = recipe_file(name, data, "");
    // Those that only store in few bits are compared by optimizer-state.
    if (parse_json(read_text(file), file).find_path("/roles/gradient") == nullptr) continue;
    policies::RecipeNumerics numerics(
        policies::Recipe::parse(parse_json(read_text(file), file), file), graph, file);
    CHECK_NOTHROW(numerics.require_trainable(file));
    CHECK(("," + list + ",").find("," + name + ",") != list.npos);
    CHECK(page.find("| `" + name + "` |") != page.npos);
    ++listed;
  }
  CHECK(listed == static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1);
}

TEST_CASE("training recipes: networks take steps under every shipped recipe", "[fast]") {
  const std::string data = NUMEMU_SOURCE "/data";
  net::TrainOptions options;
  std::vector<std::pair<std::string, std::string>> runs;  // recipe and network
  for (const std::string& name : shipped_recipes(data, true)) {
    runs.emplace_back(name, "small");
    // A recurrent network and a transformer for those that say something of gradients.
    const std::vector<std::string> inference = shipped_recipes(data, false);
    if (std::ranges::find(inference, name) != inference.end()) continue;
    for (const char* net : {"char-transformer", "lstm-char"}) runs.emplace_back(name, net);
  }
  for (const auto& [name, net] : runs) {
    INFO(name << " " << net);
    const Json json = read_recipe(name, data, "recipe");
    const bool text = net != "small";
    net::Graph graph = text ? net::build_net(net, {64}, 65) : policies::test::small_net(3, 5);
    net::initialize(graph, 1);
    options.optimizer = json["update"]["optimizer"].get<std::string>();
    policies::StagedNumerics numerics(policies::Recipe::parse(json, name), graph, name);
    std::vector<const net::Parameter*> parameters;
    for (const net::Parameter* parameter : std::as_const(graph).parameters())
      parameters.push_back(parameter);
    const auto optimizer = net::make_optimizer(options, parameters);
    const net::Tensor before = parameters.front()->value;
    double first = 0;
    // Of texts one sample and two steps: 64 positions each, which are slow.
    const std::int64_t last = text ? 1 : 2;
    for (std::int64_t i = 0; i <= last; ++i) {
      net::StepInput input;
      input.samples = {0};
      if (!text) input.samples.push_back(1);
      input.index = i;
      input.learning_rate = 0.002;
      const std::vector<float> numbers = normal(2 * 4 * 4 * 3);
      input.x = text ? net::Tensor({1, 64}) : net::Tensor({2, 4, 4, 3});
      for (std::int64_t k = 0; k < input.x.size(); ++k)
        input.x.data[k] = text ? static_cast<float>(k % 7) : numbers[k];
      input.targets.classes.assign(text ? 64 : 2, 3);
      const net::StepResult result =
          net::training_step(graph, input, options, *optimizer, numerics);
      const double loss = std::accumulate(result.seen.loss.begin(), result.seen.loss.end(), 0.0);
      CHECK(std::isfinite(loss));
      CHECK(result.gradient_norm > 0);
      if (i == 0) first = loss;
      if (i == last) CHECK(loss < first);
    }
    CHECK(before.data != parameters.front()->value.data);
  }
}

TEST_CASE("training recipes: from settings to the figure", "[fast]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "rough.json")
      << R"j({"numemu_recipe": 1, "roles": {"gradient": {"format": "int4", "rounding": "sr(8)"}}})j";
  const ExperimentRun run = testing::smoke_run(
      "training-recipes", folder,
      {"net=lstm-char", "data=" + text_file(folder), "recipes=" + (folder / "rough.json"),
       "train_samples=8", "batch=2", "eval_samples=2", "seeds=2", "points=2"});
  Conclusion conclusion;
  add_recipes(run, net::load_dataset(run.settings.text("data"), folder.path()), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  REQUIRE(conclusion.tables[0].rows.size() == 2);
  CHECK(conclusion.tables[0].rows[1][0] == "rough");
  REQUIRE(conclusion.charts.size() == 3);
  REQUIRE(conclusion.charts[0].series.size() == 2);
  CHECK(conclusion.charts[0].series[0].points.size() == 2);
  CHECK(std::isfinite(conclusion.charts[0].series[1].points[1].low));
  CHECK(conclusion.charts[1].series.size() == 1);
  int noise = 0, published = 0, others = 0;
  for (const Finding& finding : conclusion.findings) {
    CHECK(std::isfinite(finding.measured));
    noise += finding.claim == "noise";
    published += finding.claim == "loss" || finding.claim == "stable";
    others += finding.claim == "loss, others" || finding.claim == "stable, others";
    if (finding.claim != "stable, others") continue;
    CHECK(finding.what.starts_with("% of 2 runs with a spike or NaN, rough"));
    CHECK(finding.measured == 0);
    CHECK(finding.high == Approx(65.8).margin(0.1));  // two runs show little
    CHECK(finding.verdict == Verdict::undecided);
  }
  CHECK(noise == 1);
  CHECK(published == 0);  // a recipe of one's own is no publication's
  CHECK(others == 2);
  CHECK_THAT(message_of([&] {
               add_recipes(testing::smoke_run("training-recipes", folder, {"recipes=none"}),
                           testing::small_dataset(), conclusion);
             }),
             Catch::Contains("recipes"));
}

}  // namespace training_recipes_test
