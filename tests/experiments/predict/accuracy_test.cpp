// Accuracy from noise of random phase: how many samples, and how near what is measured.
#include "experiments/predict/accuracy.hpp"

#include <cmath>

#include "emu/net/data/view.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/predict/injected_network.hpp"
#include "formats/analysis/phase_noise.hpp"
#include "formats/random.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace accuracy_test {

using namespace numemu;
using namespace numemu::experiments;

namespace {

const Workbench& bench() {
  static const Workbench kBench(testing::small_dataset(), testing::small_net(), 400);
  return kBench;
}

policies::Recipe recipe_of(const std::string& format, int seed = 0) {
  const std::string role = R"({"format": ")" + format + R"("})";
  return policies::Recipe::parse_text(R"({"numemu_recipe": 1, "seed": )" + std::to_string(seed) +
                                          R"(, "roles": {"weight": )" + role +
                                          R"(, "activation": )" + role + "}}",
                                      "recipe");
}

const AccuracyReference& reference() {
  static const AccuracyReference kReference =
      accuracy_reference(bench().trained.graph, bench().dataset, {}, bench().baseline).value();
  return kReference;
}

AccuracyPrediction predicted(const policies::Recipe& recipe, double logit_noise = 0) {
  const policies::BoundRecipe bound(recipe, bench().trained.graph);
  InjectedNetwork noise(bound, bench().reference, {});
  return predict_accuracy(noise, reference(), logit_noise);
}

Verdict verdict_of(const Expected& e, double measured) {
  const stats::Interval ends = e.interval();
  return expected_verdict(e.value, {ends.low, ends.high}, measured);
}

struct Measured {
  double top1 = 0, changed = 0, loss = 0;
};

Measured measured(const policies::Recipe& recipe) {
  policies::RecipeNumerics numerics(recipe, bench().trained.graph);
  numerics.freeze(bench().trained.graph, bench().reference);
  const net::Evaluation e = net::evaluate(bench().trained.graph, bench().dataset, net::Split::test,
                                          bench().eval_images, numerics);
  return {static_cast<double>(e.correct) / static_cast<double>(e.n),
          changed_answers(e, bench().baseline), e.loss};
}

}  // namespace

TEST_CASE("accuracy is predicted on all evaluated samples, fewer of large networks", "[fast]") {
  CHECK(predicted_samples(1e5, 400) == 400);
  CHECK(predicted_samples(1e5, 10000) == kMostPredicted);
  CHECK(predicted_samples(0x1p36 / 300, 10000) == 300);
  CHECK(predicted_samples(1e12, 10000) == kFewestPredicted);
  CHECK(predicted_samples(1e12, 10) == 10);
}

TEST_CASE("some test samples, in any order", "[fast]") {
  const std::vector<std::int64_t> chosen = {300, 7, 7, 0, 399};
  const net::Dataset all = testing::small_dataset(), some = net::chosen_test(all, chosen);
  CHECK(some.test_count() == 5);
  CHECK(some.digest() == all.digest());
  net::Targets of_some, of_all;
  const net::Tensor x = some.test_batch(0, 5, of_some), y = all.test_batch(0, 400, of_all);
  const std::int64_t each = x.size() / 5;
  for (std::int64_t i = 0; i < 5; ++i) {
    const std::int64_t from = chosen[i];
    CHECK(of_some.classes[i] == of_all.classes[from]);
    CHECK(std::equal(x.data.begin() + i * each, x.data.begin() + (i + 1) * each,
                     y.data.begin() + from * each));
  }
}

TEST_CASE("expected accuracy: most measured figures lie in the printed intervals", "[fast]") {
  // 18 figures at 95 %: fewer than 14 in one of 600 sets, were they independent.
  constexpr int kFewest = 14;
  int inside = 0, all = 0;
  for (const char* format : {"int4", "int5", "mxfp4", "float4_e2m1fn", "float6_e3m2fn", "int3"}) {
    const policies::Recipe recipe = recipe_of(format);
    const AccuracyPrediction expected = predicted(recipe);
    const Measured figure = measured(recipe);
    const std::pair<Expected, double> pairs[] = {{*expected.top1, figure.top1},
                                                 {*expected.changed, figure.changed},
                                                 {expected.loss, figure.loss}};
    for (const auto& [e, value] : pairs) {
      INFO(format << " expected " << e.value << " error " << e.error << " measured " << value);
      CHECK(e.error > 0);
      // The loss of a network that was never trained moves by offsets that no sample shows.
      if (value != figure.loss) CHECK(verdict_of(e, value) != Verdict::fails);
      inside += verdict_of(e, value) == Verdict::holds;
      ++all;
    }
  }
  CHECK(all == 18);
  CHECK(inside >= kFewest);
}

TEST_CASE("expected accuracy is the same for any number of threads, another for another seed",
          "[fast]") {
  const AccuracyPrediction one = predicted(recipe_of("int4")), again = predicted(recipe_of("int4")),
                           other = predicted(recipe_of("int4", 5));
  CHECK(one.loss.value == again.loss.value);
  CHECK(one.changed->value == again.changed->value);
  CHECK(one.loss.value != other.loss.value);
}

TEST_CASE("expected accuracy of chosen samples is that of all, from fewer", "[fast]") {
  for (const char* format : {"int6", "int5", "mxfp4"}) {
    const policies::Recipe recipe = recipe_of(format);
    const AccuracyPrediction all = predicted(recipe), some = predicted(recipe, 0.05);
    INFO(format << " " << all.top1->value << " +- " << all.top1->error << ", chosen "
                << some.top1->value << " +- " << some.top1->error);
    CHECK(all.noisy.samples == 400);
    CHECK(some.noisy.samples == some.float32.samples);
    CHECK(some.noisy.samples >= kFirstPredicted);
    CHECK(verdict_of(*some.top1, all.top1->value) != Verdict::fails);
    CHECK(verdict_of(*some.changed, all.changed->value) != Verdict::fails);
  }
}

namespace {

/// The bench's network with logits of that factor, a power of two.
Workbench bench_of(float factor) {
  TrainedNet trained = testing::small_net();
  for (net::Parameter* parameter : trained.graph.parameters())
    if (parameter->name.starts_with("fc3"))
      for (float& value : parameter->value.data) value *= factor;
  return {testing::small_dataset(), std::move(trained), 400};
}

Row row_of(const Workbench& bench, const std::string& weight, const std::string& activation) {
  Point point;
  point.recipe = policies::Recipe::parse_text(
      R"({"numemu_recipe": 1, "roles": {"weight": {"format": ")" + weight +
          R"("}, "activation": {"format": ")" + activation + R"("}}})",
      "recipe");
  point.row.net = "mlp";
  return run_point(point, bench);
}

}  // namespace

TEST_CASE("expected accuracy of small logits: margins are those of answers, not of labels",
          "[fast]") {
  // The probability of a label is 0.1 in every sample, far from a half beside noise of a
  // thousandth; the next class is as near as ever. A factor of all logits changes no answer.
  const Workbench small = bench_of(0x1p-12f);
  for (const char* format : {"int6", "mxfp8_e4m3"}) {
    const Row same = row_of(bench(), format, format), row = row_of(small, format, format);
    REQUIRE(row.predicted.accuracy);
    const RowAccuracy &a = *same.predicted.accuracy, &b = *row.predicted.accuracy;
    INFO(format << " " << *b.changed->value << " " << *b.changed->ci95->high);
    CHECK(*row.metrics.changed == *same.metrics.changed);
    CHECK(*b.samples == *a.samples);
    CHECK(*b.changed->value == *a.changed->value);
    CHECK(*b.changed->ci95->high == Approx(*a.changed->ci95->high).epsilon(1e-4));
    CHECK(*b.top1->value == Approx(*a.top1->value).epsilon(1e-6));
    CHECK(*b.top1->ci95->low == Approx(*a.top1->ci95->low).epsilon(1e-4));
  }
}

TEST_CASE("expected accuracy of a network that knows little: the intervals hold and say something",
          "[fast]") {
  // 24 figures at 95 %: fewer than 20 in one of 170 sets, were they independent.
  constexpr int kFewest = 20;
  int inside = 0, all = 0;
  const Workbench small = bench_of(0x1p-5f);
  for (const auto& [weight, activation] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"group(nf4,16,float16)", "int6"},
           {"int8", "int8"},
           {"int6", "int6"},
           {"int5", "int8"},
           {"int4", "int4"},
           {"nvfp4", "nvfp4"},
           {"mxfp4", "mxfp8_e4m3"},
           {"mxfp6_e2m3", "mxfp6_e2m3"},
           {"mxfp8_e4m3", "mxfp8_e4m3"},
           {"group(int4,32,float16)", "float8_e4m3fn"},
           {"float6_e3m2fn", "float6_e3m2fn"},
           {"float4_e2m1fn", "int8"}}) {
    const Row row = row_of(small, weight, activation);
    REQUIRE(row.predicted.accuracy);
    const RowAccuracy& expected = *row.predicted.accuracy;
    for (const auto& [figure, value] : {std::pair{*expected.top1, *row.metrics.top1},
                                        std::pair{*expected.changed, *row.metrics.changed}}) {
      INFO(weight << " " << activation << ": expected " << *figure.value << " ["
                  << *figure.ci95->low << ", " << *figure.ci95->high << "], measured " << value);
      CHECK(*figure.ci95->high - *figure.ci95->low < 0.5);
      inside += *figure.ci95->low <= value && value <= *figure.ci95->high;
      ++all;
    }
  }
  CHECK(all == 24);
  CHECK(inside >= kFewest);
}

TEST_CASE("the deviation of draws: what is put in, and nothing of what is not there", "[fast]") {
  const RandomSource source{.seed = 3, .stream = Stream::probe, .tensor = 0, .draw = 0};
  constexpr std::int64_t kDraws = 64, kTrials = 50;
  std::vector<float> uniform(kDraws * kTrials);
  fill_phases(source, 0, std::ssize(uniform), uniform.data());
  const auto mean_square = [&](double deviation, double within, double prior) {
    double sum = 0;
    for (std::int64_t t = 0; t < kTrials; ++t) {
      std::vector<double> means;
      for (std::int64_t d = 0; d < kDraws; ++d)  // a uniform law has the variance 1/12
        means.push_back(std::sqrt(12 * (deviation * deviation + within)) * uniform[t * kDraws + d]);
      const double found = draws_deviation(means, within, prior);
      sum += found * found / kTrials;
    }
    return std::sqrt(sum);
  };
  // Whatever was expected before, data that say more win: sqrt(2 / 63) of a variance per trial.
  CHECK(mean_square(0.05, 0, 0.001) == Approx(0.05).epsilon(0.1));
  CHECK(mean_square(0.05, 0.0001, 0.01) == Approx(0.05).epsilon(0.15));
  CHECK(mean_square(0.05, 0.0001, 0.5) == Approx(0.05).epsilon(0.15));
  // What 64 draws cannot tell from their samples: the variance times sqrt(2 / 63).
  CHECK(mean_square(0, 0.0016, 0.001) < 0.04 * std::sqrt(std::sqrt(2.0 / 63)) / 2);
  CHECK(draws_deviation({0.1, 0.2, 0.3}, 0, 0.02) == 0.02);
  CHECK(draws_deviation({0, 0, 0, 0, 0}, 0.1, 0.02) == 0.02);
}

TEST_CASE("expected accuracy: what noise of another size would change is in its error", "[fast]") {
  // Without margins as the power of the noise, which half a decibel makes an eighth larger.
  const AccuracyPrediction int3 = predicted(recipe_of("int3"));
  CHECK(int3.changed->error > 0.12 * int3.changed->value);
  CHECK(int3.changed->error < int3.changed->value);
}

TEST_CASE("expected accuracy: verdicts by the interval", "[fast]") {
  const Expected half{0.5, 0.01};
  CHECK(verdict_of(half, 0.519) == Verdict::holds);
  CHECK(verdict_of(half, 0.475) == Verdict::undecided);
  CHECK(verdict_of(half, 0.46) == Verdict::fails);
  CHECK(verdict_of(half, NAN) == Verdict::none);
  CHECK(half.interval().low == Approx(0.5 - 1.959963984540054 * 0.01));
}

TEST_CASE("a row has what it was expected to have; float32 has none, nor what is left out",
          "[fast]") {
  const auto row_of = [](const std::string& roles, const std::string& keys = "") {
    Point point;
    point.recipe = policies::Recipe::parse_text(
        R"({"numemu_recipe": 1, "roles": {)" + roles + "}" + keys + "}", "recipe");
    point.row.net = "mlp";
    return run_point(point, bench());
  };
  const Row int6 = row_of(R"("weight": {"format": "int6"}, "activation": {"format": "int6"})");
  REQUIRE(int6.predicted.accuracy);
  const RowAccuracy& accuracy = *int6.predicted.accuracy;
  CHECK(*accuracy.samples >= kFirstPredicted);
  CHECK(*accuracy.top1->value == Approx(*int6.metrics.top1).margin(0.05));
  CHECK(*accuracy.changed->value == Approx(*int6.metrics.changed).margin(0.05));
  CHECK(*int6.metrics.changed > 0);
  CHECK(*accuracy.top1->ci95->low < *accuracy.top1->value);
  const Row float32 = row_of("");
  CHECK(!float32.predicted.accuracy);
  CHECK(*float32.metrics.changed == 0);
  const Row edges = row_of(R"("activation": {"format": "int8"})", R"(, "edges": "static")");
  CHECK(!edges.predicted.left_out.empty());
  CHECK(!edges.predicted.accuracy);
}

}  // namespace accuracy_test
