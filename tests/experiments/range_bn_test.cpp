// Range BN: closed forms against the specification, the wrong backward pass, parts at small size.
#include "experiments/range_bn/range_bn.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/backward.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/losses.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/random.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace range_bn_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::experiments::testing::held;
using numemu::test::TemporaryFolder;

namespace {

using namespace range_bn;
using Constant = net::NormRule::Constant;

ExperimentRun range_bn_run(const TemporaryFolder& folder,
                           const std::vector<std::string>& settings) {
  return testing::smoke_run("range-bn", folder, settings);
}

}  // namespace

TEST_CASE("range-bn: the table of the specification", "[fast]") {
  struct Row {
    std::int64_t n;
    double range, published, repository;
  };
  for (const Row& row : {Row{4, 2.058751, 1.2364, .6679}, Row{16, 3.531983, 1.4999, .8103},
                         Row{64, 4.687467, 1.6253, .8780}, Row{256, 5.653727, 1.6977, .9171},
                         Row{1024, 6.496479, 1.7448, .9426}, Row{4096, 7.252164, 1.7781, .9605},
                         Row{65536, 8.582259, 1.8223, .9844}}) {
    INFO(row.n);
    const double d2 = 1 / net::range_factor(Constant::exact, row.n);
    CHECK(d2 == Approx(row.range).margin(6e-7).epsilon(0));  // the digits of the table
    CHECK(d2 * net::range_factor(Constant::published, row.n) ==
          Approx(row.published).margin(6e-5).epsilon(0));
    CHECK(d2 * net::range_factor(Constant::repository, row.n) ==
          Approx(row.repository).margin(6e-5).epsilon(0));
    CHECK(least_range(row.n) < d2);
    CHECK(d2 < most_range(row.n));
  }
  // specs/mechanisms.md.
  for (const auto& [n, range] : {std::pair{8, 2.84720}, {32, 4.13934}, {128, 5.18919}})
    CHECK(1 / net::range_factor(Constant::exact, n) == Approx(range).margin(6e-6).epsilon(0));
  CHECK(most_range(7) / least_range(7) == Approx(3.0869049).margin(6e-8).epsilon(0));
}

TEST_CASE("range-bn: codes between minimum and maximum", "[fast]") {
  const MinMax q = min_max({.5f, -1, 2, 0, 1.5f, -.5f, 1, .5f}, 8);
  CHECK(q.codes == std::vector<int>{128, 0, 255, 85, 212, 42, 170, 128});
  CHECK(q.low == -1);
  CHECK(q.step == 3 / 255.0);
}

TEST_CASE("range-bn: angles of the specification", "[fast]") {
  // 100,000 normal numbers of the specification span 8.919, which the model's value at 2 bits says.
  constexpr double kRange = 8.919, kDigits = 2e-5;
  const auto model = [](int bits) { return model_cosine(kRange / ((1 << bits) - 1), 1); };
  CHECK(model(8) == Approx(.999949).margin(kDigits).epsilon(0));
  CHECK(model(6) == Approx(.999164).margin(kDigits).epsilon(0));
  CHECK(model(4) == Approx(.985584).margin(kDigits).epsilon(0));
  CHECK(model(3) == Approx(.938499).margin(1e-4).epsilon(0));  // drawn numbers, not the model
  CHECK(model(2) == Approx(.758860).margin(kDigits).epsilon(0));
  CHECK(normal_cosine(-kRange / 2, kRange / 255, 8) == Approx(model(8)).margin(1e-7).epsilon(0));
  const double thousand = 1 / net::range_factor(Constant::exact, 1000);
  CHECK(model_cosine(thousand / 255, 1) == Approx(.999970).margin(5e-6).epsilon(0));
  CHECK(angle_of(.999949) == Approx(.579).margin(6e-3));
  CHECK(angle_of(.985584) == Approx(9.74).margin(6e-3));
  CHECK(normal_sign_cosine() == Approx(.797885).margin(6e-7));
  CHECK(angle_of(normal_sign_cosine()) == Approx(37.07).margin(6e-3));
  CHECK(least_cosine(8, 100000) == Approx(.986919).margin(6e-7));
  CHECK(least_cosine(4, 100000) == Approx(.825037).margin(6e-7));
  CHECK(sign_cosine({1, -1, 1}) == Approx(1));
  CHECK(cosine({0, 1, 2, 3}, min_max({0, 1, 2, 3}, 2)) == Approx(1));
}

TEST_CASE("range-bn: the cosine of the normal law is that of a sum over a grid", "[fast]") {
  constexpr double kLow = -4.2, kHigh = 4.7;
  for (const int bits : {1, 2, 3, 4}) {
    CAPTURE(bits);
    const int last = (1 << bits) - 1, points = 2 * last * 10'000;  // cells end at whole points
    const double step = (kHigh - kLow) / last, h = (kHigh - kLow) / points;
    double product = 0, codes = 0, square = 0;
    for (int i = 0; i < points; ++i) {
      const double x = kLow + (i + 0.5) * h, q = kLow + step * std::floor((x - kLow) / step + 0.5),
                   density = std::exp(-x * x / 2);
      product += x * q * density;
      codes += q * q * density;
      square += x * x * density;
    }
    CHECK(normal_cosine(kLow, step, bits) ==
          Approx(product / std::sqrt(codes * square)).margin(1e-7).epsilon(0));
  }
}

TEST_CASE("range-bn: drawn angles of the specification", "[fast]") {
  // One draw of 100,000 normal numbers there, 12 here.
  constexpr std::size_t kNumbers = 100'000, kDraws = 12;
  std::vector<double> codes, signs;
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    RandomSource random{.seed = 3, .stream = Stream::probe};
    random.tensor = static_cast<std::uint32_t>(draw);
    std::vector<float> x(kNumbers);
    for (std::size_t i = 0; i < kNumbers; ++i)
      x[i] = static_cast<float>(normal::quantile((random.bits(i, 31) + 0.5) * 0x1p-31));
    codes.push_back(cosine(x, min_max(x, 2)));
    signs.push_back(sign_cosine(x));
  }
  const auto check = [&](const std::vector<double>& cosines, double drawn, double widest) {
    double mean = 0, squares = 0;
    for (const double c : cosines) mean += c / kDraws;
    for (const double c : cosines) squares += (c - mean) * (c - mean);
    const double error = std::sqrt(squares / (kDraws - 1) * (1 + 1.0 / kDraws));
    CAPTURE(mean, error);
    CHECK(std::fabs(mean - drawn) <= kErrors * error);
    CHECK(error <= widest);
  };
  check(codes, .807967, 0.01);
  check(signs, .798533, 0.002);
}

TEST_CASE("range-bn: the wrong backward pass has the right forward pass", "[fast]") {
  const net::Dataset data = testing::small_dataset();
  net::Graph graph = net::build_net("mlp-bn", data);
  net::initialize(graph, 0);
  const policies::Recipe recipe = policies::Recipe::parse_text(
      R"j({"numemu_recipe": 1, "norm": {"statistic": "range"}})j", "r");
  policies::RecipeNumerics right(recipe, graph), inner(recipe, graph);
  const auto wrong = variance_backward(inner);
  net::Targets targets;
  std::vector<std::int64_t> ids(16);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  const net::Tensor x = data.train_batch(ids, targets);
  const auto gradients = [&](net::Numerics& numerics, net::Tensor& output) {
    const net::Step step{.phase = net::Phase::training};
    numerics.begin_step(step);
    net::Tape tape = net::forward_training(graph, x, numerics, step);
    output = tape.output;
    net::Tensor g;
    net::cross_entropy(tape.output, targets.classes, &g, 1);
    return net::backward(graph, std::move(tape), std::move(g), numerics);
  };
  net::Tensor of_right, of_wrong;
  for (int step = 0; step < 2; ++step) {  // the second forward follows a backward
    const auto a = gradients(right, of_right), b = gradients(*wrong, of_wrong);
    CHECK(of_right.data == of_wrong.data);
    CHECK(a.back().data == b.back().data);    // above all norms
    CHECK(a.front().data != b.front().data);  // below them
  }
}

TEST_CASE("range-bn: constants, bounds and angles at small size", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  add_statistics(range_bn_run(folder, {"sizes=8,64", "samples=200000"}), conclusion);
  add_angles(range_bn_run(folder, {"numbers=2000", "repeats=5", "bits=4,8", "gradient_train=64"}),
             testing::small_dataset(), conclusion);
  for (const char* claim : {"range", "bounds", "angle, bound"}) {
    const auto [found, holds] = held(conclusion, claim);
    CHECK(found > 0);
    CHECK(holds == found);
  }
  CHECK(held(conclusion, "repository").first == 2);
  // Of normal numbers, and of the weights of three layers.
  CHECK(held(conclusion, "angle").first == 2 + 2 * 3);
  for (const Finding& finding : conclusion.findings) {
    CHECK(std::isfinite(finding.measured));
    if (finding.claim == "repository") CHECK(finding.verdict == Verdict::fails);
  }
}

TEST_CASE("range-bn: every method trains", "[fast]") {
  const TemporaryFolder folder;
  Conclusion conclusion;
  range_bn::add_training(
      range_bn_run(folder, {"train_samples=64", "eval_samples=50", "batch=32", "seeds=1"}),
      testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  CHECK(conclusion.tables[0].rows.size() == 17);
  CHECK(conclusion.findings.size() == 6 + 6 + 1 + 2);
  for (const Finding& finding : conclusion.findings) CHECK(std::isfinite(finding.measured));
  // No two methods are the same trial, the wrong backward pass in particular.
  const std::string trials = test::read_file(folder / "out/trials.jsonl");
  CHECK(std::count(trials.begin(), trials.end(), '\n') == 17);
}

}  // namespace range_bn_test
