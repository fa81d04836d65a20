// Networks trained with range normalisation, with the wrong backward pass, and in 8 bits.
#include <fmt/format.h>

#include <map>
#include <utility>

#include "emu/net/forwarding.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/paired.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/training_table.hpp"
#include "experiments/range_bn/parts.hpp"

namespace numemu::experiments::range_bn {
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
};

std::vector<Compared> compared() {
  const Json one{{"statistic", "range"}};
  const Json many{{"statistic", "range"}, {"chunks", 16}};
  Json published = one, repository = many;
  published["constant"] = "published";
  repository["constant"] = "repository";
  std::vector<Compared> all{
      {{"batch normalisation"}},
      {{"range", {{"norm", one}}}, Question::range},
      {{"range, 16 chunks", {{"norm", many}}}, Question::range},
      {{"range, published constant", {{"norm", published}}}, Question::range},
      {{"range, 16 chunks, repository's constant", {{"norm", repository}}}, Question::range},
      {{"range, backward of the variance", {{"norm", one}}}, Question::wrong, 1},
      {{"8 bits", eight_bits(many, 8, 16)}, Question::eight},
      {{"8 bits, gradient of the update too", eight_bits(many, 8, 8)}, Question::bifurcated, 6},
      {{"8 bits, gradients of 4", eight_bits(many, 4, 16)}},
      {{"8 bits, gradients of 4, of the update too", eight_bits(many, 4, 4)},
       Question::bifurcated,
       8}};
  all[5].method.around = {"backward of the variance", variance_backward};
  return all;
}

std::vector<double> points(const std::vector<TrainOutcome>& outcomes) {
  std::vector<double> all;
  for (const TrainOutcome& outcome : outcomes) all.push_back(100 * outcome.metric);
  return all;
}

}  // namespace

std::unique_ptr<net::Numerics> variance_backward(net::Numerics& inner) {
  return std::make_unique<VarianceBackward>(inner);
}

void add_training(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  const Settings& settings = run.settings;
  TrainingPlan plan;
  plan.net = settings.text("net");
  plan.data = settings.text("data");
  plan.options.optimizer = net::recommended_optimizer(plan.net);
  net::use_recommended_rates(plan.options, plan.net);
  plan.options.epochs = settings.integer("epochs", 1, 10'000);
  plan.options.batch = settings.integer("batch", 32, 100'000);
  plan.train_samples = settings.integer("train_samples", 0, 1'000'000'000);
  plan.eval_samples = settings.integer("eval_samples", 0, 1'000'000'000);
  for (std::int64_t s = 0; s < settings.integer("seeds", 1, 1000); ++s)
    plan.seeds.push_back(run.seed + static_cast<std::uint64_t>(s));
  const std::vector<Compared> all = compared();
  for (const Compared& one : all) plan.methods.push_back(one.method);
  TrainingTable training = run_training(run, data, plan);

  for (std::size_t m = 1; m < all.size(); ++m) {
    const Compared& one = all[m];
    if (one.question == Question::none) continue;
    const stats::PairedInterval lost = stats::paired_interval(
        points(training.outcomes[one.against]), points(training.outcomes[m]));
    const bool worse = one.question == Question::wrong || one.question == Question::bifurcated;
    const double margin = one.question == Question::eight ? kEightMargin : kMargin;
    conclusion.findings.push_back(interval_finding(
        fmt::format("points of top-1 lost to '{}' by '{}' ({} claimed)",
                    all[one.against].method.name, one.method.name,
                    worse ? "above 0" : fmt::format("at most {}", margin)),
        0, lost.mean, {lost.low, lost.high}, worse ? at_least(0) : at_most(margin)));
    conclusion.about(one.question == Question::range   ? "accuracy"
                     : one.question == Question::wrong ? "wrong backward"
                     : one.question == Question::eight ? "8 bits"
                                                       : "bifurcation");
  }
  conclusion.tables.push_back(std::move(training.table));
  conclusion.charts.push_back(std::move(training.chart));
}

}  // namespace numemu::experiments::range_bn
