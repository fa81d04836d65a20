// Gates: the counts behind a row's figures, verdicts of three values, scores, presets, mistakes.
#include "experiments/engine/gate.hpp"

#include <cmath>

#include "emu/stats/interval.hpp"
#include "experiments/engine/row.hpp"
#include "policies/canonical_json.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace gate_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
using numemu::test::message_of;

namespace {

double six(double x) { return policies::significant(x, 6); }

/// A row with the figures that run_point derives from counts.
Json row_of(const stats::PairedAnswers& a) {
  const auto n = static_cast<double>(a.n);
  const double right = static_cast<double>(a.both + a.only1),
               float32 = static_cast<double>(a.both + a.only2);
  const stats::Interval d = stats::paired_difference(a.only1, a.only2, a.n),
                        w = stats::wilson(a.both + a.only1, a.n);
  return {{"metrics",
           {{"top1", six(right / n)},
            {"n", a.n},
            {"ci95", {six(w.low), six(w.high)}},
            {"baseline_top1", six(float32 / n)},
            {"difference", six((right - float32) / n)},
            {"difference_ci95", {six(d.low), six(d.high)}},
            {"gained", a.only1},
            {"lost", a.only2}}}};
}

/// The same with a score for which less is better.
Json row_with_perplexity() {
  Json row = row_of({7900, 150, 220, 10000});
  row["scores"] = Json::array();
  row["scores"].push_back({{"name", "perplexity"},
                           {"value", 2.02},
                           {"ci95", {1.98, 2.06}},
                           {"baseline", 2.0},
                           {"difference", 0.02},
                           {"difference_ci95", {0.01, 0.03}}});
  return row;
}

/// A score of 40 samples of which none differs, with the exact interval of that.
Json exact_top5() {
  return {{"name", "top5"},
          {"value", 1.0},
          {"ci95", {0.9088, 1.0}},
          {"baseline", 1.0},
          {"difference", 0.0},
          {"difference_ci95", {-0.0881, 0.0}},
          {"exact", {"ci95", "difference_ci95"}}};
}

Json judged(const std::string& gate, const Json& json) {
  Row row = read_row(json);
  judge_gate(parse_gate(gate), row);
  return to_json(row)["gate"];
}

}  // namespace

TEST_CASE("the margin is that of the paired answers, which a row's figures give", "[fast]") {
  for (const stats::PairedAnswers& a : {stats::PairedAnswers{7900, 150, 220, 10000},
                                        {3, 0, 1, 5},
                                        {0, 0, 0, 7},
                                        {5, 0, 0, 5},
                                        {40123, 1001, 1523, 50000},
                                        {0, 3, 0, 3}}) {
    const Json gate = judged("0.99", row_of(a));
    const stats::Interval expected = stats::paired_share(a, 0.99, stats::kNormal99);
    CHECK(gate["margin_ci99"][0].get<double>() == six(expected.low));
    CHECK(gate["margin_ci99"][1].get<double>() == six(expected.high));
    CHECK(gate["verdict"].text() == (expected.low >= 0   ? "pass"
                                     : expected.high < 0 ? "fail"
                                                         : "undecided"));
    CHECK(gate["target"].text() == "top1 >= 0.99 float32");
  }
}

TEST_CASE("a share of float32 needs a float32", "[fast]") {
  Json row = row_of({7900, 150, 220, 10000});
  row["baseline_has"] = "3 weights stored as codes";
  CHECK_THROWS_WITH(judged("0.99", row),
                    "--gate: top1 >= 0.99 float32: the network has 3 weights stored as codes, so "
                    "no float32 is there to take a share of; expected top1>=NUMBER, such as that "
                    "share of what the network had before");
  CHECK(judged("top1>=0.5", row)["verdict"].text() == "pass");
  CHECK_NOTHROW(require_float32(parse_gate("0.99"), ""));
}

TEST_CASE("pass, fail, undecided, and the images that a decision needs", "[fast]") {
  CHECK(judged("0.9", row_of({7900, 150, 220, 10000}))["verdict"].text() == "pass");
  CHECK(judged("1", row_of({7000, 150, 900, 10000}))["verdict"].text() == "fail");
  const stats::PairedAnswers close{7880, 200, 240, 10000};
  const Json open = judged("0.99", row_of(close));
  REQUIRE(open["verdict"].text() == "undecided");
  const double margin = 0.808 - 0.99 * 0.812;
  CHECK(open["margin"].get<double>() == Approx(margin));
  const auto needed = open["images_needed"].get<std::int64_t>();
  // The planning figure has neither the half images nor the two more that the interval has.
  const double planned =
      stats::images_needed(stats::paired_share_variance(close, 0.99), margin, stats::kNormal99);
  CHECK(static_cast<double>(needed) == Approx(planned).epsilon(0.05));
  // The interval of as many images at the same shares decides, and of one fewer does not.
  const auto low = [&](std::int64_t n) {
    return stats::paired_share(close, 0.99, stats::kNormal99, static_cast<double>(n) / 10000).low;
  };
  CHECK(low(needed) >= 0);
  CHECK(low(needed - 1) < 0);
  const auto more = [&](std::int64_t count) { return count * (needed * 101 / 100) / 10000; };
  CHECK(judged("0.99", row_of({more(7880), more(200), more(240), needed * 101 / 100}))["verdict"]
            .text() == "pass");
}

TEST_CASE("an undecided gate needs more images than it has seen, by its own interval", "[fast]") {
  // The counts of LeNet on glyphs: int3 weights on 150 images, int8 on 20 of which none differs.
  const Json few = judged("0.99", row_of({143, 1, 4, 150})),
             none = judged("0.99", row_of({20, 0, 0, 20}));
  for (const Json& gate : {few, none}) {
    REQUIRE(gate["verdict"].text() == "undecided");
    CHECK(gate["images_needed"].get<std::int64_t>() > gate["images"].get<std::int64_t>());
  }
  const std::int64_t n = none["images_needed"].get<std::int64_t>();
  CHECK(judged("0.99", row_of({n, 0, 0, n}))["verdict"].text() == "pass");
  CHECK(judged("0.99", row_of({n - 1, 0, 0, n - 1}))["verdict"].text() == "undecided");
  // A share of a population that is exactly the bound: no sample tells.
  CHECK(judged("1", row_of({140, 0, 0, 150}))["images_needed"].is_null());
  CHECK(judged("top1>=0.5", row_of({50, 0, 0, 100}))["images_needed"].is_null());
  // A decided one names the number at which it would first have been decided.
  const Json done = judged("0.9", row_of({7900, 150, 220, 10000}));
  CHECK(done["images_needed"].get<std::int64_t>() < 10000);
  CHECK(judged("top1>=0.8", row_of({7900, 150, 220, 10000}))["images_needed"].get<std::int64_t>() >
        10000);
}

TEST_CASE("an undecided score needs as many units as its interval says", "[fast]") {
  Json row = row_with_perplexity();
  const Json gate = judged("perplexity<=1.005*float32", row);
  REQUIRE(gate["verdict"].text() == "undecided");
  // Half the interval shrinks as 1 / sqrt(n).
  const double half =
      (gate["margin_ci99"][1].get<double>() - gate["margin_ci99"][0].get<double>()) / 2;
  CHECK(gate["images_needed"].get<double>() ==
        Approx(10000 * std::pow(half / gate["margin"].get<double>(), 2)).epsilon(1e-3));
  // That of none among n shrinks as 1 / n.
  row["scores"][0] = exact_top5();
  row["metrics"]["n"] = 40;
  const Json exact = judged("top5>=0.99*float32", row);
  REQUIRE(exact["verdict"].text() == "undecided");
  CHECK(exact["images_needed"].get<double>() == Approx(40 * 12.7).epsilon(0.05));
}

TEST_CASE("a text needs windows, of which blocks are drawn, not characters", "[fast]") {
  Json row = row_of({40, 0, 0, 40});
  row["point"]["eval_images"] = 40;
  row["metrics"]["n"] = 40 * 64;
  row["scores"] = Json::array();
  row["scores"].push_back({{"name", "top1"},
                           {"value", 0.5},
                           {"ci95", {0.49, 0.51}},
                           {"baseline", 0.5},
                           {"difference", -0.004},
                           {"difference_ci95", {-0.012, 0.004}},
                           {"resampled", "blocks of 4 windows"}});
  Json gate = judged("0.99", row);
  REQUIRE(gate["verdict"].text() == "undecided");
  CHECK(gate["images"] == 40);
  const double half =
      (gate["margin_ci99"][1].get<double>() - gate["margin_ci99"][0].get<double>()) / 2;
  const double ratio = half / gate["margin"].get<double>();
  CHECK(gate["images_needed"].get<double>() == Approx(40 * ratio * ratio).epsilon(0.01));
  // That of none: ten blocks, of which there are fewer than in proportion to the windows.
  row["scores"][0]["value"] = row["scores"][0]["baseline"] = 1.0;
  row["scores"][0]["ci95"] = {0.6915, 1.0};
  row["scores"][0]["difference"] = 0.0;
  row["scores"][0]["difference_ci95"] = {-0.3085, 0.0};
  row["scores"][0]["exact"] = {"ci95", "difference_ci95"};
  const auto needed = [&] { return judged("0.9", row)["images_needed"].get<std::int64_t>(); };
  const std::int64_t in_blocks = needed();
  row["scores"][0]["resampled"] = "samples";
  CHECK(in_blocks > needed());
  CHECK(needed() > 40);
}

TEST_CASE("a score with counts is judged by them, a row without by its intervals", "[fast]") {
  const stats::PairedAnswers a{7900, 150, 220, 10000};
  const Json row = row_of(a), expected = judged("0.99", row);
  Json score = row["metrics"];
  Json counted = {{"metrics", {{"n", a.n}}}, {"scores", Json::array()}};
  counted["scores"].push_back({{"name", "top5"},
                               {"value", score["top1"]},
                               {"ci95", score["ci95"]},
                               {"baseline", score["baseline_top1"]},
                               {"difference", score["difference"]},
                               {"difference_ci95", score["difference_ci95"]},
                               {"gained", a.only1},
                               {"lost", a.only2}});
  CHECK(judged("top5>=0.99*float32", counted)["margin_ci99"] == expected["margin_ci99"]);
  // Half-lengths are added without the counts: longer, and about the same centre.
  Json old = row_of(a);
  old["metrics"].erase("gained");
  const Json longer = judged("0.99", old);
  CHECK(longer["margin_ci99"][0].get<double>() < expected["margin_ci99"][0].get<double>());
  CHECK(longer["margin_ci99"][1].get<double>() > expected["margin_ci99"][1].get<double>());
  // Counts that are none of n samples are not believed.
  Json damaged = row_of(a);
  damaged["metrics"]["lost"] = 20000;
  CHECK(judged("0.99", damaged)["margin_ci99"] == longer["margin_ci99"]);
}

TEST_CASE("a constant is compared with the accuracy alone", "[fast]") {
  const Json row = row_of({7900, 150, 220, 10000});
  CHECK(judged("top1>=0.76", row)["verdict"].text() == "pass");
  CHECK(judged("top1>=0.83", row)["verdict"].text() == "fail");
  const Json open = judged("top1>=0.8", row);
  CHECK(open["verdict"].text() == "undecided");
  const stats::Interval w = stats::wilson(8050, 10000, stats::kNormal99);
  CHECK(open["margin_ci99"][0].get<double>() == six(w.low - 0.8));
  CHECK(open["target"].text() == "top1 >= 0.8");
  CHECK(judged("top1<=0.83", row)["verdict"].text() == "pass");
}

TEST_CASE("scores are judged by their bootstrap intervals; less may be better", "[fast]") {
  Json row = row_with_perplexity();
  // value - 1.1 float32 = 1.1 difference - 0.1 value = -.18, half .011 + .004 = .015 at 95 %.
  const Json gate = judged("perplexity<=1.1*float32", row);
  CHECK(gate["margin"].get<double>() == Approx(0.18));
  const double half = 0.015 * stats::kNormal99 / stats::kNormal95;
  CHECK(gate["margin_ci99"][0].get<double>() == Approx(0.18 - half).epsilon(1e-5));
  CHECK(gate["verdict"].text() == "pass");
  CHECK(judged("perplexity<=1.005*float32", row)["verdict"].text() == "undecided");
  CHECK(judged("perplexity<=1.9", row)["verdict"].text() == "fail");
  // Without an interval nothing is decided; without a figure the gate is missed.
  row["scores"][0]["ci95"] = {nullptr, nullptr};
  CHECK(judged("perplexity<=3", row)["verdict"].text() == "undecided");
  row["scores"][0]["value"] = nullptr;
  CHECK(judged("perplexity<=3", row)["verdict"].text() == "fail");
  CHECK_THAT(message_of([&] { judged("auc>=0.8", row); }),
             Contains("the rows have no auc, they have perplexity, top1"));
}

TEST_CASE("the exact interval of none is lengthened by more than a normal one", "[fast]") {
  Json row = row_of({7900, 150, 220, 10000});
  row["scores"] = Json::array({exact_top5()});
  // 1 - 0.005^(1/40) = 0.1241 of 0 in 40 at 99 %, 0.0881 at 95 %.
  const double low = judged("top5>=1*float32", row)["margin_ci99"][0].get<double>();
  CHECK(low <= -0.1241);
  CHECK(low > -0.13);
  CHECK(judged("top5>=0.9*float32", row)["verdict"].text() == "undecided");
  CHECK(judged("top5>=0.85*float32", row)["verdict"].text() == "pass");
}

TEST_CASE("a judged row has a digest that matches", "[fast]") {
  Row row = read_row(Json::parse(with_digest(row_of({7, 1, 1, 10}).dump())));
  judge_gate(parse_gate("0.99"), row);
  const std::string digest = std::exchange(row.digest, "");
  CHECK(Json::parse(with_digest(to_json(row).dump()))["digest"] == digest);
}

TEST_CASE("targets by name and mistakes", "[fast]") {
  for (const GatePreset& preset : gate_presets()) {
    const Gate gate = parse_gate(std::string(preset.name));
    CHECK(gate.metric == preset.metric);
    CHECK(gate.bound == preset.share);
    CHECK((gate.relative && gate.at_least && !preset.source.empty()));
  }
  CHECK(parse_gate("auc>=0.999*float32").text == "auc >= 0.999 float32");
  CHECK_THAT(message_of([] { parse_gate("mlperf.resnot"); }), Contains("'mlperf.resnet'"));
  CHECK_THAT(message_of([] { parse_gate("top2>=0.5"); }), Contains("top2"));
  for (const char* bad :
       {"", "0", "-1", "1.5", "99%", "top1>0.5", "top1>=x", "top1>=0*float32", "top1>=nan", "1e999",
        "top1>=0.5*float16", "top1>=76", "auc>=1.01", "top1<=-0.1"})
    CHECK_THAT(message_of([&] { parse_gate(bad); }), Contains("--gate: "));
  CHECK(parse_gate("perplexity<=5").bound == 5);
  CHECK(parse_gate("top1>=1").bound == 1);
}

}  // namespace gate_test
