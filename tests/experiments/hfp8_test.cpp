// HFP8: its formats, sums, residuals and statistics against reference values, and the experiment.
#include <algorithm>
#include <cmath>

#include "emu/net/nets.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/hfp8/numbers.hpp"
#include "formats/analysis/error_moments.hpp"
#include "formats/quantize.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/experiments/smoke_run.hpp"
#include "tests/files.hpp"

namespace hfp8_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::experiments::testing::held;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;

namespace {

using namespace hfp8;

}  // namespace

TEST_CASE("hfp8: numbers rounded to its formats", "[fast]") {
  const std::vector<float> x = {0.1f,  0.3f, 1.07f,    3.14159f,        17.5f,  29.9f,
                                31.0f, 100,  0x1p-11f, 1.4f * 0x1p-14f, 0.0009f};
  struct Row {
    const char* format;
    std::vector<float> y;
  };
  // specs/training.md, HFP8 (f).
  const Row rows[] = {
      {"hfp8_e4m3",
       {.1015625f, .3125f, 1.125f, 3.25f, 18, 30, 30, 30, 0x1p-11f, 0x1p-13f, .00085449219f}},
      {"float8_e4m3", {.1015625f, .3125f, 1.125f, 3.25f, 18, 30, 32, 96, 0, 0, 0}},
      {"hfp8_e5m2",
       {.09375f, .3125f, 1, 3, 16, 28, 32, 96, 0x1p-11f, 9.1552734e-05f, .00085449219f}},
      {"hfp16_e6m9",
       {.0999755859f, .2998046875f, 1.0703125f, 3.140625f, 17.5f, 29.90625f, 31, 100, 0x1p-11f,
        8.5473061e-05f, .00090026855f}}};
  for (const Row& row : rows) {
    INFO(row.format);
    std::vector<float> y(x.size());
    quantize_values({.format = &find_format(row.format)}, x.data(), std::ssize(x), 1, y.data());
    // Printed with eight or more digits.
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == Approx(row.y[i]).epsilon(1e-7));
  }
  CHECK(largest_value(find_format("e4m3+finite")) == 480);
  const std::vector<double> normal = finite_values(find_format("hfp8_e4m3_nosub"));
  CHECK(*std::upper_bound(normal.begin(), normal.end(), 0.0) == 0x1.2p-11);
}

TEST_CASE("hfp8: what the bias of 1-4-3 buys below its range", "[fast]") {
  const auto sqnr = [](const char* format, double sigma) {
    return error_moments(cells(find_format(format), {}, false), 1, *normal_density(0, sigma))
        .sqnr_db();
  };
  // specs/training.md, HFP8 (c): one decimal, of a sample.
  CHECK(sqnr("hfp8_e4m3", 1e-3) == Approx(28.4).margin(0.1));
  CHECK(sqnr("float8_e4m3", 1e-3) == Approx(5.0).margin(0.1));
  CHECK(sqnr("hfp8_e5m2", 1e-5) == Approx(7.1).margin(0.1));
  CHECK(sqnr("hfp8_e4m3", 1e-5) < 0.5);
  CHECK(sqnr("hfp16_e6m9", 1e-5) == Approx(sqnr("hfp16_e6m9", 1)).margin(0.1));
  // The same of sigma 1, where nothing is below the range: four digits, of a sample.
  for (const auto& [format, noise] :
       {std::pair{"hfp8_e5m2", 2.796e-3}, {"hfp8_e4m3", 7.033e-4}, {"hfp16_e6m9", 1.731e-7}})
    CHECK(std::pow(10, -sqnr(format, 1) / 10) == Approx(noise).epsilon(0.01));
  CHECK(relative_noise(2) == Approx(2.818e-3).epsilon(2e-4));
  CHECK(relative_noise(3) == Approx(7.044e-4).epsilon(2e-4));
  CHECK(relative_noise(9) == Approx(1.720e-7).epsilon(2e-4));
}

TEST_CASE("hfp8: every value of both kinds is one of 1-5-3, and products fit 1-6-9", "[fast]") {
  const auto exact = [](const char* format, double x, double y) {
    const auto product = static_cast<float>(x * y);
    float rounded = 0;
    quantize_values({.format = &find_format(format)}, &product, 1, 1, &rounded);
    return rounded == product;
  };
  const std::vector<double> forward = finite_values(find_format("hfp8_e4m3")),
                            backward = finite_values(find_format("hfp8_e5m2"));
  bool converted = true, products = true;
  for (const double x : forward) {
    converted = converted && exact("e5m3b15+finite", x, 1);
    for (const double y : forward) products = products && exact("hfp16_e6m9", x, y);
    for (const double y : backward) products = products && exact("hfp16_e6m9", x, y);
  }
  for (const double x : backward) converted = converted && exact("e5m3b15+finite", x, 1);
  CHECK(converted);
  CHECK(products);
  CHECK_FALSE(exact("hfp8_e4m3", 1.125, 1.125));
}

TEST_CASE("hfp8: ones stall at 1,024, in chunks of 64 at 65,536", "[fast]") {
  // specs/training.md, HFP8 (f).
  const auto sum = [](const char* unit, std::int64_t n) {
    return measured_sums(unit, 0, n, 1, 0).mean * static_cast<double>(n);
  };
  for (const std::int64_t n : {1024, 2048, 4096, 65536}) {
    CHECK(sum("neutral.mac.hfp16_e6m9", n) == 1024);
    CHECK(sum("ibm.hfp8.chunk64", n) == static_cast<double>(n));
    CHECK(expected_sum(added_by(1), 1, static_cast<double>(n), 9) == 1024);
    CHECK(expected_chunked_sum(added_by(1), 1, 0, static_cast<double>(n), 64, 9) ==
          static_cast<double>(n));
  }
  CHECK(sum("ibm.hfp8.chunk64", 131072) == 65536);
  CHECK(expected_chunked_sum(added_by(1), 1, 0, 131072, 64, 9) == 65536);
}

TEST_CASE("hfp8: sums of random numbers follow the walk over binades", "[fast]") {
  const double width = std::sqrt(3.0);
  const AddedAt added = added_by(uniform_density(1 - width, 1 + width), 1);
  struct Row {
    std::int64_t n;
    double naive, chunked;
  };
  // specs/training.md, HFP8 (f): single sums, whose deviation is below 1.3 % one by one and 0.7 %
  // in chunks; four of them are allowed.
  for (const Row& row :
       {Row{4096, -.079, -.0015}, Row{16384, -.751, -.0024}, Row{65536, -.938, -.0058}}) {
    INFO(row.n);
    const auto n = static_cast<double>(row.n);
    const double naive = expected_sum(added, 1, n, 9) / n;
    const double chunked = expected_chunked_sum(added, 1, 1, n, 64, 9) / n;
    CHECK(naive == Approx(1 + row.naive).margin(.052));
    CHECK(chunked == Approx(1 + row.chunked).margin(.028));
    const MeanError one_by_one = measured_sums("neutral.mac.hfp16_e6m9", 1, row.n, 16, 1);
    const MeanError in_chunks = measured_sums("ibm.hfp8.chunk64", 1, row.n, 16, 1);
    constexpr double kModel = .005;
    CHECK(std::fabs(one_by_one.mean - naive) < kErrors * one_by_one.error + kModel);
    CHECK(std::fabs(in_chunks.mean - chunked) < kErrors * in_chunks.error + kModel);
    CHECK(measured_sums("neutral.mac.hfp16_e6m9.sr16", 1, row.n, 4, 1).mean ==
          Approx(1).margin(.035));
  }
}

TEST_CASE("hfp8: re-estimated statistics take the shift of channels away", "[fast]") {
  // specs/training.md, HFP8 (f): one draw of 32 channels. The noise of a channel varies with its 64
  // weights by a third, so that of their mean by 6 %: three of them are allowed, and as much for
  // the reference's own draw.
  constexpr double kDraws = 0.25;
  // The reference names no scales of its 4 bits: these put the largest of 2,048 weights, 3.6, and
  // of the inputs, 4.5, on the largest values, inputs without a sign. Its share of 0.76 agrees:
  // 0.84 is that of operands of equal noise.
  struct Row {
    Operand weights, inputs;
    double stale, tuned;
  };
  for (const Row& row : {Row{{"hfp8_e5m2"}, {"hfp8_e5m2"}, .00812, .00663},
                         Row{{"int4", 3.6 / 7}, {"uint4", 4.5 / 15}, .0447, .0340}}) {
    INFO(row.weights.format);
    const LayerNoise measured = layer_noise(row.weights, row.inputs, 4000, 0);
    CHECK(measured.stale == Approx(row.stale).epsilon(kDraws));
    CHECK(measured.tuned == Approx(row.tuned).epsilon(kDraws));
    CHECK(measured.tuned < .9 * measured.stale);
  }
  CHECK(retuned_share(1, 1, 1 / M_PI) == Approx(1 - 1 / (2 * M_PI)));
  CHECK(retuned_share(0, 1, 0.5) == 1);
}

TEST_CASE("hfp8: half an ulp decides which updates are lost", "[fast]") {
  const Format& format = find_format("hfp8_e4m3");
  CHECK(ulp_of(format, 1) == .125);
  CHECK(ulp_of(format, -1.9) == .125);
  CHECK(ulp_of(format, 0.99) == .0625);
  CHECK(ulp_of(format, 0) == 0x1p-13);
  CHECK(ulp_of(format, 0x1p-12) == 0x1p-13);
  net::Graph graph = net::build_net("mlp", {8, 8, 1}, 10);
  UpdateWatch watch(format, 2);
  for (net::Parameter* parameter : graph.parameters())
    std::fill(parameter->value.data.begin(), parameter->value.data.end(), 1.0f);
  watch.see(graph, 1);
  for (net::Parameter* parameter : graph.parameters()) {
    net::Elements& w = parameter->value.data;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] += i % 4 == 0 ? 0 : i % 4 == 1 ? .0625f : .05f;
  }
  watch.see(graph, 2);
  REQUIRE(watch.looks().size() == 3);  // weights, not biases
  CHECK(watch.looks()[0].small == .75);
  CHECK(watch.looks()[0].unchanged == .25);
}

TEST_CASE("hfp8: rounding and sums from settings to conclusion", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run =
      testing::smoke_run("hfp8", folder, {"samples=20000", "lengths=512,4096"});
  Conclusion conclusion;
  add_rounding(run, conclusion);
  add_sums(run, conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what << ": " << finding.predicted << " " << finding.measured);
    if (finding.claim == "rounding") CHECK(testing::agrees(finding));
    // The errors of 20,000 numbers are too large for 2 % to hold.
    if (finding.claim == "constant") CHECK(finding.verdict != Verdict::fails);
    if (finding.claim == "stall") CHECK(finding.verdict == Verdict::holds);
  }
}

TEST_CASE("hfp8: networks are trained with every master and loss scale", "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "hfp8", folder,
      {"seeds=2", "epochs=1", "batch=32", "train_samples=128", "eval_samples=50", "look_every=2"});
  Conclusion conclusion;
  add_training(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 2);
  CHECK(conclusion.tables[0].rows.size() == 9 + 2);
  CHECK(conclusion.tables[1].rows.size() == 3);  // layers
  CHECK(held(conclusion, "updates").first == 3);
  CHECK(held(conclusion, "accuracy").first == 5);
  for (const Finding& finding : conclusion.findings) {
    INFO(finding.what);
    CHECK(std::isfinite(finding.measured));
    CHECK(finding.what.starts_with("mlp: "));
    if (finding.claim != "chunks") continue;
    CHECK(finding.verdict == Verdict::none);
    CHECK_THAT(finding.what, Catch::Contains(" products do not stall, as those of more than 1024 may"));
  }
  Conclusion without;
  add_training(testing::smoke_run("hfp8", folder, {"net=-"}), testing::small_dataset(), without);
  CHECK(without.findings.empty());
  CHECK_THAT(message_of([&] {
               Conclusion none;
               add_training(testing::smoke_run("hfp8", folder,
                                               {"train_samples=64", "batch=32", "eval_samples=10",
                                                "look_every=100"}),
                            testing::small_dataset(), none);
             }),
             Catch::Contains("look_every: expected fewer steps"));
}

TEST_CASE("hfp8: workers train in both kinds, in 1-5-2 alone and with an exchange in 8 bits",
          "[fast]") {
  const TemporaryFolder folder;
  const ExperimentRun run = testing::smoke_run(
      "hfp8", folder,
      {"nets=mlp", "seeds=2", "epochs=1", "batch=32", "train_samples=64", "eval_samples=50"});
  Conclusion conclusion;
  add_exchange(run, testing::small_dataset(), conclusion);
  REQUIRE(conclusion.tables.size() == 1);
  const ResultTable& table = conclusion.tables[0];
  REQUIRE(table.rows.size() == 4);
  // Bytes sent: one for each number in place of four, and a scale for each of six tensors.
  const double whole = std::stod(table.rows[0][1]);
  CHECK(std::stod(table.rows[1][1]) == whole);
  CHECK(std::stod(table.rows[3][1]) == whole / 4 + 6 * 4);
  CHECK(held(conclusion, "networks").first == 1);
  CHECK(held(conclusion, "one kind").first == 1);
  CHECK(held(conclusion, "exchange").first == 1);

  Conclusion none;
  add_exchange(testing::smoke_run("hfp8", folder, {}), testing::small_dataset(), none);
  CHECK(none.findings.empty());
}

}  // namespace hfp8_test
