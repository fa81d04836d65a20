// Ranges in the place of variances, and everything in 8 bits: what the constants estimate, how far
// codes turn a vector, what training loses.
#include "experiments/range_bn/range_bn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "emu/stats/mean.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/train_trial.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::range_bn {

namespace {

/// The cosine of x and y(i).
template <class Y>
double cosine_of(const std::vector<float>& x, const Y& y) {
  const auto n = static_cast<std::int64_t>(x.size());
  const auto sum = [&](auto term) {
    return pairwise_sum(n, [&](std::int64_t i) {
      return term(double{x[static_cast<std::size_t>(i)]}, y(static_cast<std::size_t>(i)));
    });
  };
  return sum([](double a, double b) { return a * b; }) /
         std::sqrt(sum([](double a, double) { return a * a; }) *
                   sum([](double, double b) { return b * b; }));
}

}  // namespace

double most_range(std::int64_t n) {
  return 2 * std::sqrt(2 * portable::log(static_cast<double>(n)));
}

double least_range(std::int64_t n) {
  return most_range(n) / (1 + std::sqrt(std::numbers::pi * portable::log(4.0)));
}

double published_estimate(std::int64_t n, double d2) { return 2 * d2 / most_range(n); }

double repository_estimate(std::int64_t n, double d2) { return 0.35 * d2 / least_range(n); }

MinMax min_max(const std::vector<float>& x, int bits) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  MinMax q{*low, (double{*high} - *low) / ((1 << bits) - 1), {}};
  for (const float v : x)
    q.codes.push_back(q.step > 0 ? static_cast<int>(std::nearbyint((v - q.low) / q.step)) : 0);
  return q;
}

double cosine(const std::vector<float>& x, const MinMax& q) {
  return cosine_of(x, [&](std::size_t i) { return q.low + q.codes[i] * q.step; });
}

double sign_cosine(const std::vector<float>& x) {
  return cosine_of(x, [&](std::size_t i) { return x[i] < 0 ? -1.0 : 1.0; });
}

double model_cosine(double step, double variance) {
  return 1 / std::sqrt(1 + step * step / (12 * variance));
}

double normal_cosine(double low, double step, int bits) {
  // Over the cell (a, b) of a code the integrals of 1, x and x^2 times the density.
  const int last = (1 << bits) - 1;
  double product = 0, codes = 0, square = 0;
  for (int code = 0; code <= last; ++code) {
    const double q = low + code * step;
    const double a = code == 0 ? q : q - step / 2, b = code == last ? q : q + step / 2;
    const double share = normal::cdf(b) - normal::cdf(a);
    product += q * (normal::pdf(a) - normal::pdf(b));
    codes += q * q * share;
    square += share + a * normal::pdf(a) - b * normal::pdf(b);
  }
  return product / std::sqrt(codes * square);
}

double least_cosine(int bits, std::int64_t n) {
  return (1 << bits) / ((1 << bits) + std::sqrt(portable::log(static_cast<double>(n))));
}

double normal_sign_cosine() { return std::sqrt(2 / std::numbers::pi); }

double angle_of(double cosine) {
  return portable::acos(std::min(1.0, cosine)) * 180 / std::numbers::pi;
}

// Standard deviations estimated from the range of n normal numbers by three constants.

namespace {

using Constant = net::NormRule::Constant;

constexpr struct {
  Constant constant;
  const char* name;
  double (*predicted)(std::int64_t n, double d2);  ///< mean estimate
} kConstants[] = {{Constant::exact, "exact", [](std::int64_t, double) { return 1.0; }},
                  {Constant::published, "published", published_estimate},
                  {Constant::repository, "repository", repository_estimate}};
constexpr double kNear = 0.01;  // relative, of a constant that is to estimate the deviation

/// The mean estimate of a deviation, its error, and the spread of one estimate.
struct DeviationEstimate {
  double mean = 0, error = 0, spread = 0;

  static void fields(auto& self, const auto& visit) {
    visit("mean", self.mean);
    visit("error", self.error);
    visit("spread", self.spread);
  }
};

/// By constant, of batch normalisation over the same samples / n columns of n numbers.
using Estimates = Named<DeviationEstimate>;
Estimates measure(std::int64_t n, std::int64_t samples, std::uint64_t seed) {
  const std::int64_t columns = std::max<std::int64_t>(2, samples / n);
  const RandomSource random{seed, Stream::data, static_cast<std::uint32_t>(n)};
  const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n * columns), 31);
  Estimates result;
  for (const auto& one : kConstants) {
    const net::BatchStatistics batch = net::batch_statistics(
        x.data(), n, columns,
        {.statistic = net::NormRule::Statistic::range, .constant = one.constant});
    const auto estimate = [&](std::int64_t c) {
      return std::sqrt(batch.variance[static_cast<std::size_t>(c)]);
    };
    const stats::Mean mean = stats::mean_of(columns, estimate);
    result.push_back({one.name, {mean.value, mean.error, mean.deviation}});
  }
  return result;
}

}  // namespace

void add_statistics(const ExperimentRun& run, Conclusion& conclusion) {
  const std::vector<std::int64_t> sizes = run.settings.whole_numbers("sizes");
  const std::int64_t samples = run.settings.integer("samples");
  const std::vector<Estimates> results =
      run_cases<Estimates>(run, sizes, [&](std::int64_t n) -> TypedTrial<Estimates> {
        return {{{"ranges by constant", n}, {"samples", samples}, {"seed", run.seed}},
                fmt::format("ranges of {} numbers", n),
                [=, seed = run.seed] { return measure(n, samples, seed); }};
      });
  ResultTable table{
      fmt::format("deviations of normal numbers estimated from ranges, about {} numbers each",
                  samples),
      {"n", "E[range] / sigma", "measured", "exact: measured", "spread of one",
       "published: predicted", "measured", "repository: predicted", "measured"},
      {}};
  Chart chart{.title = "Standard deviation estimated from the range of n normal numbers",
              .caption =
                  "Mean estimate over the true deviation, with 95 % intervals; constant times "
                  "E[range] dashed. exact 1 / E[range], published 1 / sqrt(2 ln n), "
                  "repository 0.5402 / sqrt(2 ln n).",
              .x = "n",
              .y = "estimate / deviation",
              .log_x = true};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t n = sizes[i];
    const double d2 = 1 / net::range_factor(Constant::exact, n);
    const DeviationEstimate& exact = results[i].front().second;
    const double range = d2 * exact.mean, half_range = stats::kNormal95 * d2 * exact.error;
    std::vector<std::string> row = {std::to_string(n), fmt::format("{:.6f}", d2),
                                    half_text(range, half_range, 4)};
    for (std::size_t c = 0; c < std::size(kConstants); ++c) {
      const auto& [constant, name, law] = kConstants[c];
      const DeviationEstimate& measured = results[i].at(c).second;
      const double predicted = law(n, d2);
      const std::string what = fmt::format("deviation by the {} constant, n = {}", name, n);
      conclusion.add(closed_form(what, predicted, measured.mean, measured.error), "range");
      conclusion.add(model_finding(what + " (1 claimed)", 1, measured.mean, measured.error, kNear),
                     name);
      if (constant != Constant::exact) row.push_back(fmt::format("{:.4f}", predicted));
      row.push_back(fmt::format("{:.4f}", measured.mean));
      if (constant == Constant::exact) row.push_back(fmt::format("{:.3f}", measured.spread));
      const auto x = static_cast<double>(n);
      chart.add(name, with_error({.x = x, .y = measured.mean}, measured.error),
                {.x = x, .y = predicted});
    }
    for (const bool upper : {false, true}) {
      const double bound = upper ? most_range(n) : least_range(n);
      conclusion.add(
          interval_finding(fmt::format("mean range of {} normal numbers (at {} {:.3f} claimed)", n,
                                       upper ? "most" : "least", bound),
                           bound, range, {range - half_range, range + half_range},
                           upper ? at_most(bound) : at_least(bound)),
          "bounds");
    }
    table.rows.push_back(std::move(row));
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

// The angle between a vector and its min-max codes: normal numbers, weights of a network.

namespace {

constexpr double kAngleNear = 0.02;  // relative, of angles

double mean_square(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return sum / static_cast<double>(x.size());
}

/// In degrees: measured, by the model of uniform errors, and that of normal numbers of the same
/// mean square and ends.
struct Angles {
  double measured = 0, model = 0, normal = 0;

  static void fields(auto& self, const auto& visit) {
    visit("measured", self.measured);
    visit("model", self.model);
    visit("normal", self.normal);
  }
};
using ByBits = std::vector<Angles>;

ByBits angles(const std::vector<float>& x, const std::vector<std::int64_t>& bits) {
  const double square = mean_square(x), deviation = std::sqrt(square);
  ByBits result;
  for (const std::int64_t m : bits) {
    const MinMax q = min_max(x, static_cast<int>(m));
    result.push_back(
        {angle_of(cosine(x, q)), angle_of(model_cosine(q.step, square)),
         angle_of(normal_cosine(q.low / deviation, q.step / deviation, static_cast<int>(m)))});
  }
  return result;
}

struct NormalAngles {
  std::vector<ByBits> repeats;
  std::vector<double> sign;  ///< of the signs of each

  static void fields(auto& self, const auto& visit) {
    visit("repeats", self.repeats);
    visit("sign", self.sign);
  }
};

NormalAngles normal_angles(std::int64_t n, std::int64_t repeats,
                           const std::vector<std::int64_t>& bits, std::uint64_t seed) {
  NormalAngles result;
  for (std::int64_t r = 0; r < repeats; ++r) {
    RandomSource random;
    random.seed = seed;
    random.stream = Stream::probe;
    random.tensor = static_cast<std::uint32_t>(r);
    const std::vector<float> x = normal::sample(random, static_cast<std::size_t>(n), 31);
    result.repeats.push_back(angles(x, bits));
    result.sign.push_back(angle_of(sign_cosine(x)));
  }
  return result;
}

/// The angles of a layer's weight, by layer.
using WeightAngles = Named<ByBits>;
WeightAngles weight_angles(const std::string& net, const net::Dataset& data, std::int64_t train,
                           const std::vector<std::int64_t>& bits, std::uint64_t seed) {
  WeightAngles result;
  const net::Graph graph = briefly_trained(net, data, train, seed);
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    if (layer.weight != nullptr) result.push_back({layer.name, angles(layer.weight->data, bits)});
  }
  return result;
}

/// A figure of every repeat at place `b`, with its 95 % interval.
template <class Figure>
stats::PairedInterval over(const std::vector<ByBits>& repeats, std::size_t b,
                           const Figure& figure) {
  std::vector<double> values;
  for (const ByBits& repeat : repeats) values.push_back(std::invoke(figure, repeat[b]));
  return stats::paired_interval(values);
}

}  // namespace

void add_angles(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  const std::vector<std::int64_t> bits = settings.whole_numbers("bits");
  const std::vector<std::int64_t> numbers = settings.whole_numbers("numbers");
  const std::int64_t repeats = settings.integer("repeats"),
                     train = settings.integer("gradient_train", 32, data.train_count());
  const std::string& net = settings.text("net");
  std::vector<Trial> trials;
  for (const std::int64_t n : numbers)
    trials.push_back(untyped<NormalAngles>(
        {{{"angles", n}, {"repeats", repeats}, {"bits", bits}, {"seed", run.seed}},
         fmt::format("angles of {} numbers", n),
         [=, seed = run.seed] { return normal_angles(n, repeats, bits, seed); }}));
  trials.push_back(untyped<WeightAngles>(
      {{{"angles", net},
        {"data", data.name()},
        {"samples", data.digest()},
        {"train", train},
        {"bits", bits},
        {"seed", run.seed}},
       "angles of the weights of " + net,
       [=, &data, seed = run.seed] { return weight_angles(net, data, train, bits, seed); }}));
  const std::vector<Json> results = run_trials(run, trials);

  ResultTable table{
      fmt::format("angle in degrees between numbers and their min-max codes, {} repeats", repeats),
      {"numbers", "bits", "uniform error", "normal law", "measured", "published: at most"},
      {}};
  Chart chart{
      .title = "Angle between a vector and its min-max codes",
      .caption = fmt::format(
          "Round to nearest between the smallest and the largest element, {} repeats, 95 % "
          "intervals; dashed: errors uniform and independent, arccos(1 / sqrt(1 + D^2 / (12 "
          "sigma^2))).",
          repeats),
      .x = "bits",
      .y = "angle, degrees",
      .log_y = true};
  const auto of_model = [&](std::size_t b) { return bits[b] > 2 ? "angle" : "angle, few bits"; };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::int64_t n = numbers[i];
    const auto [all, signs] = measured<NormalAngles>(results[i]);
    for (std::size_t b = 0; b < bits.size(); ++b) {
      const stats::PairedInterval measured = over(all, b, &Angles::measured),
                                  model = over(all, b, &Angles::model),
                                  law = over(all, b, &Angles::normal);
      const std::string where = fmt::format("{} normal numbers, {} bits", n, bits[b]);
      conclusion.add(
          interval_finding("angle over that of uniform errors, " + where, 1,
                           over(all, b, [](const Angles& a) { return a.measured / a.model; }),
                           near(1, kAngleNear)),
          of_model(b));
      conclusion.add(
          interval_finding("angle over that of the normal law by cells, " + where, 1,
                           over(all, b, [](const Angles& a) { return a.measured / a.normal; }),
                           near(1, kAngleNear)),
          "angle, normal law");
      const double bound = angle_of(least_cosine(static_cast<int>(bits[b]), n));
      conclusion.add(interval_finding("angle in degrees against the published bound, " + where,
                                      bound, measured, at_most(bound)),
                     "angle, bound");
      table.rows.push_back({std::to_string(n), std::to_string(bits[b]),
                            fmt::format("{:.3f}", model.mean), fmt::format("{:.3f}", law.mean),
                            half_text(measured, 3), fmt::format("{:.3f}", bound)});
      const auto x = static_cast<double>(bits[b]);
      chart.add(fmt::format("{} normal numbers,", n), gain_point(x, "", measured),
                {.x = x, .y = model.mean});
    }
    const stats::PairedInterval sign = stats::paired_interval(signs);
    const double predicted = angle_of(normal_sign_cosine());
    conclusion.add(
        interval_finding(fmt::format("angle in degrees of the signs of {} normal numbers", n),
                         predicted, sign, near(predicted, kAngleNear * predicted)),
        "angle, signs");
    table.rows.push_back({std::to_string(n), "sign", "-", fmt::format("{:.3f}", predicted),
                          half_text(sign, 3), "-"});
  }
  for (const auto& [layer, of_layer] : measured<WeightAngles>(results.back())) {
    for (std::size_t b = 0; b < bits.size(); ++b) {
      const double measured = of_layer.at(b).measured, model = of_layer.at(b).model;
      const std::string where = fmt::format("{} of {}", layer, net);
      conclusion.add(
          exact_finding(fmt::format("angle over that of uniform errors, weight of {}, {} bits",
                                    where, bits[b]),
                        1, measured / model, std::fabs(measured / model - 1) <= kAngleNear),
          of_model(b));
      table.rows.push_back({where, std::to_string(bits[b]), fmt::format("{:.3f}", model), "-",
                            fmt::format("{:.3f}", measured), "-"});
    }
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.charts.push_back(std::move(chart));
}

// Networks trained with range normalisation, with the wrong backward pass, and in 8 bits.

namespace {

constexpr double kMargin = 0.5;       // points that range normalisation is claimed to lose at most
constexpr double kEightMargin = 1.0;  // and everything in 8 bits

class VarianceBackward final : public net::Forwarding {
 public:
  using Forwarding::Forwarding;
  void begin_step(const net::Step& step) override {
    backward_ = false;
    Forwarding::begin_step(step);
  }
  void edge(const net::Step& step, const net::Edge& edge, net::Tensor& tensor) override {
    backward_ = edge.backward;
    Forwarding::edge(step, edge, tensor);
  }
  net::NormRule norm(const net::Step& step, std::string_view layer) override {
    net::NormRule rule = Forwarding::norm(step, layer);
    if (backward_) rule.statistic = net::NormRule::Statistic::variance;
    return rule;
  }

 private:
  bool backward_ = false;
};

/// Min-max codes of a whole tensor.
Json codes(int bits, const char* rounding = "rne") {
  return {{"format", fmt::format("group(uint{},tensor,float32,min)", bits)},
          {"rounding", rounding}};
}

/// Weights, activations, results of norms and ReLUs in 8 bits, the gradient that goes on in
/// `dgrad` bits, the one of the update in `wgrad` bits (16: symmetric), both stochastic.
Json eight_bits(Json norm, int dgrad, int wgrad) {
  const char* const random = "sr(16)";
  const Json update =
      wgrad == 16 ? Json{{"format", "int16"}, {"rounding", random}} : codes(wgrad, random);
  return {{"norm", std::move(norm)},
          {"roles",
           {{"weight", codes(8)},
            {"activation", codes(8)},
            {"vector", codes(8)},
            {"gradient", {{"dgrad", codes(dgrad, random)}, {"wgrad", update}}}}}};
}

enum class Question { none, range, wrong, eight, bifurcated };

struct Compared {
  TrainingMethod method;
  Question question = Question::none;
  std::size_t against = 0;  ///< the place of the method that it is compared with
  const char* claim = "";   ///< that this comparison is about
};

std::vector<Compared> compared() {
  const auto range = [](int chunks, const char* constant) {
    return Json{{"statistic", "range"}, {"chunks", chunks}, {"constant", constant}};
  };
  constexpr int kChunks = 16;
  std::vector<Compared> all{{{"batch normalisation"}}};
  for (const char* constant : {"exact", "published", "repository"}) {
    for (const int chunks : {1, kChunks}) {
      const Json norm{{"norm", range(chunks, constant)}};
      const std::string name =
          fmt::format("range, {}, {}", chunks == 1 ? "1 chunk" : "16 chunks", constant);
      all.push_back({{name, norm}, Question::range, 0, "accuracy"});
      all.push_back({{name + ", backward of the variance",
                      norm,
                      {"backward of the variance", variance_backward}},
                     Question::wrong,
                     all.size() - 1,
                     std::string_view(constant) == "published"
                         ? "wrong backward"
                         : "wrong backward, other constants"});
    }
  }
  const Json norm = range(kChunks, "exact");
  for (const int bits : {8, 4}) {
    const std::string name =
        bits == 8 ? "8 bits" : fmt::format("8 bits, gradients of {} bits", bits);
    all.push_back({{name, eight_bits(norm, bits, 16)},
                   bits == 8 ? Question::eight : Question::none,
                   0,
                   "8 bits"});
    all.push_back({{name + ", not bifurcated", eight_bits(norm, bits, bits)},
                   Question::bifurcated,
                   all.size() - 1,
                   "bifurcation"});
  }
  return all;
}

}  // namespace

std::unique_ptr<net::Numerics> variance_backward(net::Numerics& inner) {
  return std::make_unique<VarianceBackward>(inner);
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  TrainingPlan plan;
  plan.trial = training_of(settings, settings.text("net"), {.least_batch = 32});
  plan.data = settings.text("data");
  plan.seeds = seeds_of(run);
  const std::vector<Compared> all = compared();
  for (const Compared& one : all) plan.methods.push_back(one.method);
  TrainingTable training = run_training(run, data, plan);

  std::vector<PairedGain> wrong, bifurcated;
  PairedClaims ranges, eight;
  for (std::size_t m = 1; m < all.size(); ++m) {
    const Compared& one = all[m];
    const auto what = [&](const char* change) {
      return fmt::format("points of top-1 {} '{}' by '{}'", change, all[one.against].method.name,
                         one.method.name);
    };
    const PairedGain lost{what("lost to"), gain(training.top1, one.against, m), one.claim};
    if (one.question == Question::wrong) wrong.push_back(lost);
    if (one.question == Question::bifurcated) bifurcated.push_back(lost);
    const auto claim = [&](PairedClaims& claims, double margin) {
      claims.add(fmt::format("{}, at least -{}", what("gained on"), margin),
                 gain(training.top1, m, one.against), -margin, one.claim);
    };
    if (one.question == Question::range) claim(ranges, kMargin);
    if (one.question == Question::eight) claim(eight, kEightMargin);
  }
  conclusion.add(ranges.judged());
  conclusion.add(eight.judged());
  conclusion.add(judge_gains(wrong));
  conclusion.add(judge_gains(bifurcated));
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace numemu::experiments::range_bn

namespace numemu::experiments {

extern const Experiment experiment_range_bn = {
    "range-bn",
    "does the range of a batch replace its variance in normalisation, and do networks train with "
    "it when weights, activations and gradients have 8 bits",
    "Banner et al. (NeurIPS 2018, arXiv 1805.11046) claim that C(n) times the range of a batch, "
    "C(n) = 1 / sqrt(2 ln n), serves as its standard deviation, that 8 bits preserve the direction "
    "of a tensor, and that networks train in 8 bits when the gradient of the update has 16.",
    {{"range", "Each constant times the range has the mean C(n) d2(n) (derived here)."},
     {"exact", "1 / d2(n) times the range estimates the deviation within 1 % (derived here)."},
     {"published",
      "Taken for the deviation itself, as the paper does not, 1 / sqrt(2 ln n) times the range is "
      "within 1 % of it (a contrast)."},
     {"repository", "The constant of the published code estimates it within 1 % (a contrast)."},
     {"bounds",
      "The mean range lies between the published bounds: times 1 / sqrt(2 ln n) it is 0.65 to 2 "
      "deviations (published)."},
     {"angle",
      "With 3 bits and more the angle between a tensor and its min-max codes is that of uniform "
      "errors within 2 % (derived here)."},
     {"angle, few bits", "So it is with 1 and 2 bits (a contrast)."},
     {"angle, normal law",
      "Angles of normal numbers are those of the cells of their law within 2 % (derived here)."},
     {"angle, bound", "No angle exceeds the published bound (published)."},
     {"angle, signs",
      "Signs of normal numbers are 37.07 degrees away, within 2 % (published; the margin is "
      "ours)."},
     {"accuracy",
      "Range normalisation loses at most 0.5 points of top-1 to batch normalisation (published; "
      "the margin is ours).",
      "seeds"},
     {"wrong backward",
      "The backward pass of the variance on ranges loses accuracy with the published constant (a "
      "contrast).",
      "seeds"},
     {"wrong backward, other constants", "So it does with the other two (a contrast).", "seeds"},
     {"8 bits",
      "Everything in 8 bits, the gradient of the update in 16, loses at most 1 point (published; "
      "the margin is ours).",
      "seeds"},
     {"bifurcation",
      "The gradient of the update in as few bits as the other one loses accuracy (published).",
      "seeds"}},
    {{"sizes", "4,256", "4,8,16,64,256,1024,4096,65536", "4,8,16,64,256,1024,4096,65536",
      "numbers that a range is of", wholes(2, 1 << 20)},
     {"samples", "40000", "8000000", "64000000", "numbers of each size",
      whole(1000, 1'000'000'000)},
     {"numbers", "1000", "1000,100000", "1000,100000", "normal numbers that are quantized",
      wholes(16, 100'000'000)},
     {"repeats", "3", "20", "100", "draws of these numbers", whole(3, 1000)},
     {"bits", "2,4,8", "1,2,3,4,6,8", "1,2,3,4,5,6,7,8", "of the codes", wholes(1, 8)},
     {"net", "mlp-bn", "network with batch normalisation", takes_network()},
     data_setting(),
     {"gradient_train", "256", "2048", "8192", "samples before its weights are quantized, once",
      whole(32, 1'000'000'000)},
     training_settings({"1", "4", "8"}, "128", {"512", "8192", "8192"}, {"500", "4000", "0"}),
     seeds_setting({"1", "5", "10"})},
    conclude<range_bn::add_statistics, range_bn::add_angles, range_bn::add_training>};

}  // namespace numemu::experiments
