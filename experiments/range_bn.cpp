// Ranges in the place of variances, and everything in 8 bits: what the constants estimate, how far
// codes turn a vector, what training loses.
#include <fmt/format.h>

#include <utility>

#include "emu/net/numerics.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/range_bn/ranges.hpp"

namespace numemu::experiments {
namespace range_bn {

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

}  // namespace range_bn

namespace {

Conclusion run_range_bn(const ExperimentRun& run) {
  Conclusion conclusion;
  range_bn::add_statistics(run, conclusion);
  const net::Dataset data = load_data(run);
  range_bn::add_angles(run, data, conclusion);
  range_bn::add_training(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_range_bn;
const Experiment experiment_range_bn = {
    "range-bn",
    "does the range of a batch replace its variance in normalisation, and do networks train with "
    "it when weights, activations and gradients have 8 bits",
    "Banner et al. (NeurIPS 2018, arXiv 1805.11046) claim that C(n) times the range of a batch, "
    "C(n) = 1 / sqrt(2 ln n), serves as its standard deviation, that 8 bits preserve the direction "
    "of a tensor, and that networks train in 8 bits when the gradient of the update has 16.",
    {{"range", "Each constant times the range has the mean C(n) d2(n) (derived here)."},
     {"exact", "1 / d2(n) times the range estimates the deviation within 1 % (derived here)."},
     {"published",
      "1 / sqrt(2 ln n) times the range estimates the deviation within 1 % (published)."},
     {"repository", "The constant of the published code estimates it within 1 % (published)."},
     {"bounds", "The mean range lies between the published bounds (published)."},
     {"angle",
      "With 3 bits and more the angle between a tensor and its min-max codes is that of uniform "
      "errors within 2 % (derived here)."},
     {"angle, few bits", "So it is with 1 and 2 bits (a contrast)."},
     {"angle, normal law",
      "Angles of normal numbers are those of the cells of their law within 2 % (derived here)."},
     {"angle, bound", "No angle exceeds the published bound (published)."},
     {"angle, signs", "Signs of normal numbers are 37.07 degrees away, within 2 % (published)."},
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
     {"net", "mlp-bn", "mlp-bn", "mlp-bn", "network with batch normalisation", takes_network()},
     data_setting(),
     {"gradient_train", "256", "2048", "8192", "samples before its weights are quantized, once",
      whole(32, 1'000'000'000)},
     training_settings({"1", "4", "8"}, "128", {"512", "8192", "8192"}, {"500", "4000", "0"}),
     seeds_setting({"1", "5", "10"})},
    run_range_bn};

}  // namespace numemu::experiments
