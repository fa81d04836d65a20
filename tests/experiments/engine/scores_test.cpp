// Scores against figures by hand, and intervals of texts against those of independent samples.
#include "experiments/engine/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/random.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"

namespace numemu::experiments::scores_test {
namespace {

/// Facts alone.
class Facts final : public net::Samples {
 public:
  explicit Facts(net::DataFacts facts) { facts_ = std::move(facts); }
  void read(net::Part, std::int64_t, const net::AugmentDraw*, float*,
            net::TargetSpan) const override {}
};

net::Dataset set_of(net::DataKind kind, net::TargetKind target, std::int64_t classes,
                    net::Shape shape) {
  net::DataFacts facts;
  facts.kind = kind;
  facts.target = target;
  facts.classes = classes;
  facts.target_shape = std::move(shape);
  return {"s", std::make_shared<Facts>(facts)};
}

double figure(const std::string& name, const net::Dataset& data,
              const std::vector<net::Outcome>& outcomes, std::vector<std::int64_t> times = {}) {
  const net::Score& score = net::find_score(name);
  net::ScoreTable table{score.columns(data), {}};
  table.sums.resize(outcomes.size() * static_cast<std::size_t>(table.columns));
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    score.add(outcomes[i], table.sums.data() + static_cast<std::int64_t>(i) * table.columns);
  times.resize(outcomes.size(), 1);
  return score.figure(table)(times);
}

TEST_CASE("scores of classes, maps, values and outputs", "[fast]") {
  using Kind = net::DataKind;
  using Target = net::TargetKind;
  const net::Dataset two = set_of(Kind::arrays, Target::classes, 2, {});
  // Logits of class 1: 0.1 (0), 0.4 (0), 0.35 (1), 0.8 (1): the example of scikit-learn, 0.75.
  const std::vector<float> logits = {0, 0.1f, 0, 0.4f, 0, 0.35f, 0, 0.8f};
  const std::vector<std::int32_t> labels = {0, 0, 1, 1};
  std::vector<net::Outcome> binary;
  for (std::size_t i = 0; i < 4; ++i)
    binary.push_back({{logits.data() + 2 * i, 2}, {}, {labels.data() + i, 1}, {}, {}, 2});
  CHECK(figure("auc", two, binary) == 0.75);
  CHECK(figure("auc", two, binary, {1, 2, 1, 1}) == 4.0 / 6);
  CHECK(figure("top1", two, binary) == 0.5);

  // A map of 4 places and 3 classes, one place ignored: answers 0 1 1, labels 0 1 2.
  const net::Dataset maps = set_of(Kind::images, Target::classes, 3, {2, 2});
  const std::vector<float> places = {9, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 9};
  const std::vector<std::int32_t> map = {0, 1, 2, net::kNoClass};
  const std::vector<net::Outcome> one = {{places, {}, map, {}, {}, 3}};
  CHECK(figure("pixel_accuracy", maps, one) == 2.0 / 3);
  CHECK(figure("mean_iou", maps, one) == Approx((1 + 0.5 + 0) / 3).epsilon(1e-15));

  const net::Dataset images = set_of(Kind::images, Target::values, 0, {1, 2, 1});
  const std::vector<float> out = {0.5f, 0.25f}, expected = {0.5f, 0.5f};
  const std::vector<net::Outcome> values = {{out, expected, {}, expected, {}, 1}};
  CHECK(figure("mse", images, values) == 0.03125);
  CHECK(figure("mae", images, values) == 0.125);
  CHECK(figure("psnr", images, values) == Approx(-10 * std::log10(0.03125)));
  CHECK(figure("cosine", images, values) == Approx(0.375 / std::sqrt(0.3125 * 0.5)).epsilon(1e-14));
  CHECK(figure("sqnr", images, values) == Approx(10 * std::log10(0.5 / 0.0625)));

  const std::vector<float> ten = {9, 8, 7, 6, 5, 5, 3, 2, 1, 0};
  const net::Dataset many = set_of(Kind::arrays, Target::classes, 10, {});
  for (std::int32_t label = 0; label < 10; ++label) {
    CAPTURE(label);  // 4 and 5 tie for the fifth place, which the first takes
    CHECK(figure("top5", many, {{ten, {}, {&label, 1}, {}, {}, 10}}) == (label < 5));
  }
  const std::vector<double> loss = {std::log(8.0)};
  const std::int32_t first = 0;
  const std::vector<net::Outcome> lost = {{ten, {}, {&first, 1}, {}, loss, 10}};
  CHECK(figure("perplexity", many, lost) == Approx(8));
  CHECK(figure("bits_per_token", many, lost) == Approx(3));
  CHECK(net::default_scores(maps).front() == "mean_iou");
  CHECK(net::default_scores(two).empty());
  CHECK_THROWS_WITH(net::scores_for(images, {"top5"}),
                    Catch::Equals("metric top5 needs classes as targets, and the data set s has "
                                  "images as targets; metrics that fit: mse, mae, psnr, cosine, "
                                  "sqnr"));
  CHECK_THROWS_WITH(
      net::scores_for(many, {"auc"}),
      Catch::StartsWith("metric auc needs two classes, one per sample, and the data "
                        "set s has 10 classes, 1 per sample; metrics that fit: top1"));
  CHECK_THROWS_WITH(net::scores_for(set_of(Kind::arrays, Target::none, 0, {}), {"mse"}),
                    Catch::StartsWith("metric mse needs numbers as targets, and the data set s has "
                                      "no targets (an array y gives them)"));
  CHECK_THROWS_WITH(net::scores_for(images, {"topp5"}), Catch::Contains("top5"));
}

TEST_CASE("docs/data.md has every metric", "[fast]") {
  const std::string page = read_text(NUMEMU_SOURCE "/docs/data.md");
  const std::size_t begin = page.find("\n| metric | of |"), end = page.find("\n\n", begin);
  REQUIRE(begin != page.npos);
  const std::string table = page.substr(begin, end - begin);
  for (const std::string& name : net::score_names())
    CHECK_THAT(table, Catch::Contains("`" + name + "`"));
}

TEST_CASE("the AUC of any resample is that of its pairs, counted one by one", "[fast]") {
  constexpr std::int64_t kSamples = 90;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  net::ScoreTable table{2, {}};
  const RandomSource random{.seed = 3};
  for (std::int64_t i = 0; i < kSamples; ++i) {
    const double logit = random.bits(static_cast<std::uint64_t>(i), 4);  // with ties
    table.sums.push_back(i == 7 ? NAN : i == 8 ? kInf : i == 9 ? -kInf : logit);
    table.sums.push_back(i % 3 == 0);
  }
  const auto direct = [&](const std::vector<std::int64_t>& times) {
    double pairs = 0, all = 0;
    for (std::int64_t one = 0; one < kSamples; ++one) {
      for (std::int64_t zero = 0; zero < kSamples; ++zero) {
        const double z1 = table.sums[2 * one], z0 = table.sums[2 * zero];
        if (table.sums[2 * one + 1] != 1 || table.sums[2 * zero + 1] != 0) continue;
        if (std::isnan(z1) || std::isnan(z0)) continue;
        const auto count = static_cast<double>(times[one] * times[zero]);
        all += count;
        pairs += z1 > z0 ? count : z1 == z0 ? count / 2 : 0;
      }
    }
    return pairs / all;
  };
  const net::Figure auc = net::find_score("auc").figure(table);
  std::vector<std::int64_t> times(kSamples, 1);
  CHECK(auc(times) == direct(times));
  for (std::int64_t left_out = 0; left_out < kSamples; ++left_out) {
    CAPTURE(left_out);
    times[left_out] = 0;
    CHECK(auc(times) == direct(times));
    times[left_out] = left_out % 4;  // some counts of 2 and 3 stay
  }
  std::fill(times.begin(), times.end(), 0);
  CHECK(std::isnan(auc(times)));
}

TEST_CASE("blocks of windows widen the interval of a text whose windows are alike", "[fast]") {
  CHECK(block_length(1) == 1);
  CHECK(block_length(27) == 3);
  CHECK(block_length(28) == 4);
  constexpr std::int64_t kWindows = 1000;  // runs of 10 equal losses
  net::Evaluation evaluation;
  evaluation.samples = kWindows;
  net::ScoreTable table{2, {}};
  for (std::int64_t i = 0; i < kWindows; ++i) {
    table.sums.push_back(static_cast<double>(i / 10 * 37 % 101) / 101);
    table.sums.push_back(1);
  }
  evaluation.tables = {table};
  const std::vector<net::OutputScore> scores = {&net::find_score("log_loss")};
  const auto row = [&](net::DataKind kind) {
    return scores_of(set_of(kind, net::TargetKind::classes, 9, {1}), scores, evaluation,
                     evaluation)[0];
  };
  const auto width = [](const RowScore& score) {
    return score.ci95.value().high.value() - score.ci95->low.value();
  };
  const RowScore text = row(net::DataKind::text), samples = row(net::DataKind::arrays);
  CHECK(text.resampled == "blocks of 10 windows");
  CHECK(samples.resampled == "samples");
  // Ten equal windows are one: sqrt(10) times as wide, but for the noise of 1,000 resamples.
  constexpr double kNoise = 0.15;
  CHECK(width(text) / width(samples) == Approx(std::sqrt(10.0)).epsilon(kNoise));
  CHECK(text.difference == 0.0);
  CHECK(text.difference_ci95 == Ends{0, 0});
  // One sample, and a sample without a figure, have no interval.
  evaluation.samples = 1;
  evaluation.tables = {net::ScoreTable{2, {0.5, 1}}};
  CHECK(row(net::DataKind::arrays).ci95 == Ends{});
  evaluation.samples = 3;
  evaluation.tables = {net::ScoreTable{2, {0.5, 1, std::nan(""), 1, 0.25, 1}}};
  CHECK(row(net::DataKind::arrays).value.is_null);
  CHECK(row(net::DataKind::arrays).ci95 == Ends{});
}

TEST_CASE("where no sample differs the interval is that of none among as many", "[fast]") {
  constexpr std::int64_t kSamples = 40;
  net::Evaluation own, float32;
  own.samples = float32.samples = kSamples;
  net::ScoreTable half{2, {}};  // of five answers: 0 to 4 right
  for (std::int64_t i = 0; i < kSamples; ++i) {
    half.sums.push_back(static_cast<double>(i % 5));
    half.sums.push_back(5);
  }
  own.tables = float32.tables = {half};
  const std::vector<net::OutputScore> top1 = {&net::find_score("top1")};
  const double none = 1 - std::pow(0.025, 1.0 / kSamples);  // Clopper and Pearson
  constexpr double kSix = 1e-6;                             // digits of a row
  const auto ends = [](const Json& score, const char* key) {
    return std::pair(score[key][0].get<double>(), score[key][1].get<double>());
  };
  Json score = json_of(scores_of(false, top1, own, float32))[0];
  CHECK(score["exact"] == Json::array({"difference_ci95"}));
  CHECK(ends(score, "difference_ci95").first == Approx(-none).epsilon(kSix));
  CHECK(ends(score, "difference_ci95").second == Approx(none).epsilon(kSix));
  CHECK(ends(score, "ci95").first < 0.39);  // resampled: 0.4, and its error 0.045
  // All right in both: fewer are possible, more are not. Texts have fewer units, their blocks.
  for (auto& sum : half.sums) sum = 5;
  own.tables = float32.tables = {half};
  score = json_of(scores_of(false, top1, own, float32))[0];
  CHECK(score["exact"] == Json::array({"ci95", "difference_ci95"}));
  CHECK(ends(score, "ci95").first == Approx(1 - none).epsilon(kSix));
  CHECK(ends(score, "ci95").second == 1);
  CHECK(ends(score, "difference_ci95").first == Approx(-none).epsilon(kSix));
  CHECK(ends(score, "difference_ci95").second == 0);
  const Json text = json_of(scores_of(true, top1, own, float32))[0];
  const double ten = 1 - std::pow(0.025, 0.1);  // blocks of 4 windows
  CHECK(ends(text, "ci95").first == Approx(1 - ten).epsilon(kSix));
  // One answer of one sample changes: resamples differ, and the bootstrap is asked.
  own.tables[0].sums[2] = 4;
  score = json_of(scores_of(false, top1, own, float32))[0];
  CHECK(!score.contains("exact"));
  CHECK(ends(score, "difference_ci95").first < 0);
}

TEST_CASE("samples that are right or wrong are counted, not resampled", "[fast]") {
  // 6 right in both, 2 here alone, 1 in float32 alone, 3 in neither.
  net::Evaluation own, float32;
  own.samples = float32.samples = 12;
  own.tables = float32.tables = {net::ScoreTable{2, {}}};
  for (int i = 0; i < 12; ++i) {
    own.tables[0].sums.insert(own.tables[0].sums.end(), {i < 8 ? 1.0 : 0.0, 1});
    float32.tables[0].sums.insert(float32.tables[0].sums.end(), {i < 6 || i == 8 ? 1.0 : 0.0, 1});
  }
  const std::vector<net::OutputScore> top1 = {&net::find_score("top1")};
  const Json score = json_of(scores_of(false, top1, own, float32))[0];
  CHECK(score["gained"] == 2);
  CHECK(score["lost"] == 1);
  CHECK(!score.contains("resampled"));
  constexpr double kSix = 1e-6;  // digits of a row
  const stats::Interval wilson = stats::wilson(8, 12), change = stats::paired_difference(2, 1, 12);
  CHECK(score["ci95"][0].get<double>() == Approx(wilson.low).epsilon(kSix));
  CHECK(score["ci95"][1].get<double>() == Approx(wilson.high).epsilon(kSix));
  CHECK(score["difference_ci95"][0].get<double>() == Approx(change.low).epsilon(kSix));
  CHECK(score["difference_ci95"][1].get<double>() == Approx(change.high).epsilon(kSix));
  // Windows of a text follow each other, and a sample of several targets is no count.
  CHECK(json_of(scores_of(true, top1, own, float32))[0]["resampled"] == "blocks of 3 windows");
  own.tables[0].sums[1] = 2;
  CHECK(json_of(scores_of(false, top1, own, float32))[0]["resampled"] == "samples");
}

TEST_CASE("answers behind ignored targets are counted, ignored ones are not", "[fast]") {
  net::Evaluation own, float32;
  own.right = {0, 0, 1, 1, 0};  // the first two are ignored
  float32.right = {0, 0, 0, 1, 1};
  own.n = float32.n = 3;
  const stats::PairedAnswers answers = paired_answers(own, float32);
  CHECK(answers.n == 3);
  CHECK(answers.both == 1);
  CHECK(answers.only1 == 1);
  CHECK(answers.only2 == 1);
}

TEST_CASE("top-1 of one sample with several classes has no interval", "[fast]") {
  const std::vector<net::OutputScore> scores = {&net::find_score("top1")};
  net::Evaluation own;
  own.samples = 1;
  own.n = 5;
  own.correct = 3;
  own.right = {1, 1, 1, 0, 0};
  own.tables = {{2, {3, 5}}};
  const auto intervals = [&](const net::Shape& shape) {
    return top1_intervals(set_of(net::DataKind::text, net::TargetKind::classes, 9, shape), own, own,
                          scores_of(true, scores, own, own));
  };
  CHECK(std::isnan(intervals({5}).top1.low));
  CHECK(std::isnan(intervals({5}).top1.high));
  CHECK(std::isnan(intervals({5}).difference.low));
  CHECK(intervals({}).top1.low == stats::wilson(3, 5).low);
}

TEST_CASE("a figure that is no number has its reason", "[fast]") {
  const net::Score& sqnr = net::find_score("sqnr");
  net::Evaluation own, float32;
  own.samples = float32.samples = 3;
  own.tables = {{2, {1, 0.5, 1, 0.5, 1, 0.25}}};
  float32.tables = {{2, {1, 0, 1, 0, 1, 0}}};
  Json score = json_of(scores_of(false, {&sqnr}, own, float32))[0];
  CHECK(score["baseline"].is_null());
  CHECK(score["why_no_baseline"] == "float32 is compared with itself");
  CHECK(!score.contains("why_no_value"));
  own.tables[0].sums[3] = NAN;
  score = json_of(scores_of(false, {&sqnr}, own, float32))[0];
  CHECK(score["why_no_value"] ==
        "the figures of 1 of 3 samples are NaN, as outputs are NaN or nothing is compared");
  const net::Score& psnr = net::find_score("psnr");
  own.tables[0].sums = {30, 1, HUGE_VAL, 1, 28, 1};
  CHECK(json_of(scores_of(false, {&psnr}, own, own))[0]["why_no_value"] ==
        "the figures of 1 of 3 samples are infinite");
}

}  // namespace
}  // namespace numemu::experiments::scores_test
