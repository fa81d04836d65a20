// Optimizer state in blocks of 8 bits and master weights in bfloat16: what they save, what they
// lose, and what it costs training.
#include "experiments/optimizer_state/optimizer_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "emu/net/nets.hpp"
#include "emu/net/train/train.hpp"
#include "experiments/engine/study.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/storage/array.hpp"
#include "policies/bits/effective_bits.hpp"
#include "policies/numerics/staged_numerics.hpp"

namespace numemu::experiments::optimizer_state {

namespace {

constexpr int kBfloat16Mantissa = 7, kSmallestExponent = -126;

}  // namespace

Lost lost_update(float w, float d) {
  const int exponent = w == 0 ? kSmallestExponent : std::max(std::ilogb(w), kSmallestExponent);
  const double ratio = std::fabs(d) / std::ldexp(1.0, exponent - kBfloat16Mantissa);
  return {ratio < 0.5 ? 1.0 : 0.0, std::max(0.0, 1 - ratio)};
}

Watch::Watch(net::Numerics& inner, const net::TrainOptions& options, std::int64_t zeros_after,
             std::int64_t every, std::vector<Method> predicted)
    : Forwarding(inner),
      zeros_after_(zeros_after),
      every_(every),
      rate_(options.learning_rate),
      rest_(1 - options.beta2),
      predicted_(std::move(predicted)),
      zeros_of_(predicted_.size()) {}

void Watch::update(const net::Step& step, const net::Update& update) {
  const std::vector<float>& delta = *update.delta;
  const net::Elements& gradient = update.gradient->data;
  std::vector<float>& peak = peaks_[std::string(update.parameter)];
  peak.resize(delta.size());
  for (std::size_t i = 0; i < delta.size(); ++i) {
    peak[i] = std::max(peak[i], gradient[i] * gradient[i]);
    largest_ = std::max(largest_, std::fabs(delta[i]) / rate_);
  }
  const bool counted = step.index % every_ == every_ - 1;
  const net::Elements before = counted ? update.value->data : net::Elements();
  Forwarding::update(step, update);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (delta[i] == 0) continue;
    const Lost lost = lost_update(before[i], delta[i]);
    ++updates_;
    lost_ += before[i] == update.value->data[i];
    nearest_ += lost.nearest;
    stochastic_ += lost.stochastic;
  }
}

void Watch::for_each_block(const net::Tensor& tensor, const OfBlock& use) const {
  const auto size = static_cast<std::size_t>(find_block_format(predicted_[0].second).size);
  const auto length = static_cast<std::size_t>(tensor.shape.back());
  for (std::size_t first = 0; first < tensor.data.size();) {
    const std::size_t end = std::min(first + size, (first / length + 1) * length);
    use(first, end);
    first = end;
  }
}

/// A second moment below half of the smallest number of its block becomes 0 to nearest, and then
/// the next gradient g alone makes it (1 - beta2) g^2: it stays 0 unless one gradient lifts it.
/// What is above does not decay, nor does the largest of a block: beta2 takes off less than half a
/// step. Unbiased rounding leaves 0 with the probability 1 - v / smallest.
void Watch::predict(std::string_view parameter, const net::Tensor& second) {
  const std::vector<float>& peak = peaks_.find(parameter)->second;
  const std::vector<float>& highest = highest_.find(parameter)->second;
  for (std::size_t m = 0; m < predicted_.size(); ++m) {
    const Format& element = *find_block_format(predicted_[m].second).element;
    const double smallest = smallest_value(element) / largest_value(element);
    for_each_block(second, [&](std::size_t first, std::size_t end) {
      const auto* const v = second.data.data();
      const double most =
          predicted_[m].stochastic ? *std::max_element(v + first, v + end) : highest[first];
      for (std::size_t i = first; i < end; ++i) {
        if (peak[i] == 0) continue;
        const double steps =
            (predicted_[m].stochastic ? v[i] : rest_ * peak[i]) / (smallest * most);
        zeros_of_[m] += predicted_[m].stochastic ? std::max(0.0, 1 - steps) : steps < 0.5;
      }
    });
  }
}

void Watch::optimizer_state(const net::Step& step, std::string_view parameter,
                            std::string_view name, net::Tensor& state) {
  const bool second = name == "second", last = step.index + 1 == zeros_after_;
  if (second && !predicted_.empty()) {
    std::vector<float>& highest = highest_[std::string(parameter)];
    highest.resize(state.data.size());
    for_each_block(state, [&](std::size_t first, std::size_t end) {
      const auto* const v = state.data.data();
      highest[first] = std::max(highest[first], *std::max_element(v + first, v + end));
    });
    if (last) predict(parameter, state);
  }
  Forwarding::optimizer_state(step, parameter, name, state);
  if (!second || !last) return;
  const std::vector<float>& peak = peaks_.find(parameter)->second;
  for (std::size_t i = 0; i < peak.size(); ++i) {
    seconds_ += peak[i] > 0;
    zeros_ += peak[i] > 0 && state.data[i] == 0;
  }
}

Watched Watch::watched() const {
  Watched watched{.lost = lost_ / updates_,
                  .lost_nearest = nearest_ / updates_,
                  .lost_stochastic = stochastic_ / updates_,
                  .zeros = zeros_ / seconds_,
                  .largest = largest_};
  for (std::size_t m = 0; m < predicted_.size(); ++m)
    watched.zeros_of.emplace_back(predicted_[m].name, zeros_of_[m] / seconds_);
  return watched;
}

namespace {

constexpr double kMargin = 0.5;      // points of top-1
constexpr double kZerosNear = 0.01;  // of the share of zeros
constexpr double kNear = 0.05;       // of shares that another run's float32 numbers predict
/// Steps before second moments of 0 are counted: few, before what they do to updates drives the run
/// away from float32's.
constexpr std::int64_t kZerosAfter = 4;
constexpr std::int64_t kEvery = 4;  // steps between two whose updates are counted

constexpr const char *kRne = "rne", *kSr = "sr(16)";

// Claims about top-1.
constexpr const char *kMoments = "moments", *kMasters = "masters", *kNearest = "nearest",
                     *kIntegers = "integers", *kOthers = "other states";

Json stored(const std::string& format, const char* rounding) {
  return {{"format", format}, {"rounding", rounding}};
}

Json masters(const char* rounding) { return {{"master", "bfloat16"}, {"rounding", rounding}}; }

struct Measured {
  Watched watched;
  double top1 = 0, master_bytes = 0, state_bytes = 0;  ///< of a parameter

  static void fields(auto& self, const auto& visit) {
    Watched::fields(self.watched, visit);
    visit("top1", self.top1);
    visit("master_bytes", self.master_bytes);
    visit("state_bytes", self.state_bytes);
  }
};

/// Trains, measures and evaluates; `predicted` where the method is float32.
Measured train(const TrainTrial& trial, const net::Dataset& data, std::vector<Method> predicted) {
  net::Graph graph = initial_network(trial, data);
  net::TrainOptions options = trial.options;
  options.seed = trial.seed;
  const policies::Recipe recipe = parsed_recipe(trial);
  policies::StagedNumerics staged(recipe, graph);
  const net::Dataset cut = restricted(data, trial.train_samples, false);
  const std::int64_t steps =
      options.epochs * ((cut.train_count() + options.batch - 1) / options.batch);
  Watch watch(staged, options, std::min(steps, kZerosAfter), kEvery, std::move(predicted));
  net::train(graph, cut, options, watch);
  net::Numerics float32;
  const policies::ParameterBytes bytes = policies::parameter_bytes({recipe, graph}, options);
  return {watch.watched(), test_top1(graph, data, trial.eval_samples, float32), bytes.master,
          bytes.state};
}

/// What the seeds of every method say beside float32, the first.
struct Compared {
  const std::string& net;
  const std::vector<Method>& methods;
  const Study<Measured>& study;
  SeedFigures top1;  ///< per cent

  stats::PairedInterval difference(std::size_t m) const { return gain(top1, m); }
  double mean(std::size_t m, double Measured::*figure) const { return study.mean(m, figure); }
  std::vector<double> watched(std::size_t m, double Watched::*figure) const {
    return study.figures(m, [&](const Measured& run) { return run.watched.*figure; });
  }
  double mean(std::size_t m, double Watched::*figure) const {
    return stats::paired_interval(watched(m, figure)).mean;
  }
  /// Of float32 runs, seed by seed: second moments of 0 that they predict of a method.
  std::vector<double> zeros_of(std::size_t m) const {
    std::vector<double> shares;
    for (const Measured& run : study.runs[0]) {
      for (const auto& [name, share] : run.watched.zeros_of)
        if (name == methods[m].name) shares.push_back(share);
    }
    return shares;
  }
  /// Updates that float32 runs predict to be lost.
  double Watched::*lost_of(std::size_t m) const {
    return methods[m].stochastic ? &Watched::lost_stochastic : &Watched::lost_nearest;
  }
};

void judge(const Compared& c, Conclusion& conclusion) {
  // Seed by seed: the float32 run of a seed predicts the others'.
  const auto near_it = [&](std::string what, const std::vector<double>& predicted,
                           const std::vector<double>& shares, double tolerance, const char* claim) {
    const double p = stats::paired_interval(predicted).mean;
    if (shares == predicted)  // with every seed, such as no second moment of 0
      return conclusion.add(exact_finding(std::move(what), p, p, true, near(p, tolerance)), claim);
    const stats::PairedInterval off = stats::paired_interval(shares, predicted);
    conclusion.add(interval_finding(std::move(what), p, p + off.mean, {p + off.low, p + off.high},
                                    near(p, tolerance)),
                   claim);
  };
  for (std::size_t m = 0; m < c.methods.size(); ++m) {
    if (!c.methods[m].second.empty())
      near_it(fmt::format("{}: second moments of 0, {}", c.net, c.methods[m].name), c.zeros_of(m),
              c.watched(m, &Watched::zeros), kZerosNear, "zeros");
  }
  for (std::size_t m = 0; m < c.methods.size(); ++m) {
    if (c.methods[m].masters)
      near_it(fmt::format("{}: updates lost, {}", c.net, c.methods[m].name),
              c.watched(0, c.lost_of(m)), c.watched(m, &Watched::lost), kNear, "lost");
  }
  PairedClaims claims;
  for (std::size_t m = 0; m < c.methods.size(); ++m) {
    const std::string& name = c.methods[m].name;
    const std::string_view claim = c.methods[m].claim;
    if (claim == kNearest || claim == kIntegers) {
      const double least = claim == kIntegers ? kMargin : 0;
      claims.add(fmt::format("{}: points lost to float32 by {}, at least {}", c.net, name, least),
                 negated(c.difference(m)), least, std::string(claim));
    } else if (!claim.empty()) {
      claims.add(
          fmt::format("{}: points gained on float32 by {}, at least -{}", c.net, name, kMargin),
          c.difference(m), -kMargin, std::string(claim));
    }
  }
  conclusion.add(claims.judged());
}

ResultTable table_of(const TrainTrial& trial, const std::string& data, const Compared& c) {
  // A run too short to update anything has lost no share of its updates.
  const auto percent = [](double x) {
    return std::isfinite(x) ? fmt::format("{:.1f}", 100 * x) : std::string("-");
  };
  const auto share = [&](double Watched::*figure) {
    return [&c, percent, figure](std::size_t m) { return percent(c.mean(m, figure)); };
  };
  return study_table(
      fmt::format("{} on {}, {}, {} epochs, {}, paired by seed", trial.net, data,
                  trial.options.optimizer, trial.options.epochs, counted(c.study.seeds(), "seed")),
      c.methods.size(),
      {name_column("stored", c.study.methods),
       {"bytes per parameter: master, state",
        [&](std::size_t m) {
          return fmt::format("{:.2f}, {:.2f}", c.mean(m, &Measured::master_bytes),
                             c.mean(m, &Measured::state_bytes));
        }},
       {"top-1, %",
        [&](std::size_t m) { return fmt::format("{:.2f}", 100 * c.mean(m, &Measured::top1)); }},
       difference_column("difference, points", c.top1),
       interval_column(c.top1),
       {"second moments of 0, %", share(&Watched::zeros)},
       {"predicted, %",
        [&](std::size_t m) -> std::string {
          if (c.methods[m].second.empty()) return "-";
          double zeros = 0;
          for (const double of_seed : c.zeros_of(m))
            zeros += of_seed / static_cast<double>(c.study.seeds());
          return percent(zeros);
        }},
       {"updates lost, %", share(&Watched::lost)},
       {"predicted, %",
        [&](std::size_t m) {
          return c.methods[m].masters ? percent(c.mean(0, c.lost_of(m))) : "-";
        }},
       {"largest update / rate",
        [&](std::size_t m) { return fmt::format("{:.3g}", c.mean(m, &Watched::largest)); }}});
}

}  // namespace

std::vector<Method> methods(std::int64_t block) {
  const auto of = [&](const char* element) {
    return fmt::format("group({},{},float32)", element, block);
  };
  // No sign, no infinity: three bits of significand and the range of float8_e5m2.
  const std::string int8 = of("int8"), uint8 = of("uint8"), e4m3 = of("float8_e4m3fn"),
                    e5m2 = of("float8_e5m2"), e5m3 = of("e5m3+finite+unsigned");
  const auto split = [&](const std::string& first, const std::string& second,
                         const char* rounding) {
    return Json{
        {"roles",
         {{"state", {{"first", stored(first, rounding)}, {"second", stored(second, rounding)}}}}}};
  };
  const auto whole = [&](const char* rounding) {
    return Json{{"roles", {{"state", stored("bfloat16", rounding)}}}};
  };
  Json all = split(int8, e5m3, kSr);
  all["update"] = masters(kSr);
  return {
      {"float32", Json::object()},
      {"state int8", split(int8, int8, kRne), kIntegers, int8},
      {"state int8, second uint8", split(int8, uint8, kRne), kIntegers, uint8},
      {"state int8, second uint8, sr", split(int8, uint8, kSr), kIntegers, uint8, true},
      {"state int8, second e5m3", split(int8, e5m3, kRne), "", e5m3},
      {"state int8, second e5m3, sr", split(int8, e5m3, kSr), kMoments, e5m3, true},
      {"state e4m3, second e5m2", split(e4m3, e5m2, kRne), "", e5m2},
      {"state e4m3, second e5m2, sr", split(e4m3, e5m2, kSr), kMoments, e5m2, true},
      {"state bfloat16", whole(kRne)},
      {"state bfloat16, sr", whole(kSr), kOthers},
      {"masters bfloat16", {{"update", masters(kRne)}}, kNearest, "", false, true},
      {"masters bfloat16, sr", {{"update", masters(kSr)}}, kMasters, "", true, true},
      {"masters bfloat16, state int8, second e5m3, sr", std::move(all), kOthers, e5m3, true, true}};
}

void add_net(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
             Conclusion& conclusion) {
  const Settings& settings = run.settings;
  TrainingPlan plan{.trial = training_of(settings, net, {.optimizer = "adam"}),
                    .data = data.name(),
                    .seeds = {},
                    .at_once = true,
                    .prefix = net + ": "};
  const std::vector<Method> compared = methods(settings.integer("block"));
  plan.seeds = seeds_of(run);
  std::vector<Method> predicted;
  Json of_float32 = Json::object();
  for (const Method& method : compared) {
    if (method.second.empty()) continue;
    predicted.push_back(method);
    of_float32[method.name] = method.recipe;
  }
  for (const Method& method : compared) {
    Json counted = {{"counted", fmt::format("updates of every {}th step, zeros after {}", kEvery,
                                            kZerosAfter)}};
    if (plan.methods.empty()) counted["predicted"] = of_float32;
    plan.methods.push_back(
        {.name = method.name, .recipe = method.recipe, .counted = std::move(counted)});
  }
  const auto study =
      run_training_study<Measured>(run, data, plan, [&](const TrainTrial& trial, std::size_t m) {
        return train(trial, data, m == 0 ? predicted : std::vector<Method>{});
      });
  const Compared c{net, compared, study,
                   study.figures([](const Measured& one) { return 100 * one.top1; })};
  judge(c, conclusion);
  conclusion.tables.push_back(table_of(plan.trial, data.name(), c));
  conclusion.charts.push_back(gain_chart(
      fmt::format("What stored states and masters cost {} on {}", net, data.name()),
      fmt::format("Difference of top-1 to float32 over {}, with its 95 % interval by "
                  "Student's t law paired by seed; below 0 is worse. Products are float32.",
                  counted(study.seeds(), "seed")),
      "difference, points", study.methods, c.top1));
  const auto bytes = [&](std::size_t m) {
    return c.mean(m, &Measured::master_bytes) + c.mean(m, &Measured::state_bytes);
  };
  for (std::size_t m = 0; m < compared.size(); ++m) {
    if (*compared[m].claim == '\0' || study.seeds() < 2) continue;
    conclusion.sentences.push_back(
        fmt::format("{}: {} ({:.2f} bytes per parameter, float32 {:.2f}): {:+.2f} points {}.", net,
                    compared[m].name, bytes(m), bytes(0), c.difference(m).mean,
                    interval_text(c.difference(m))));
  }
}

}  // namespace numemu::experiments::optimizer_state

namespace numemu::experiments {

namespace {

Conclusion run_optimizer_state(const ExperimentRun& run) {
  Conclusion conclusion;
  const net::Dataset data = load_data(run);
  for (const std::string& net : run.settings.list("nets"))
    optimizer_state::add_net(run, net, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_optimizer_state = {
    "optimizer-state",
    "how few bits do Adam's moments and the master weights need, and can what they lose be "
    "predicted from a float32 run",
    "Dettmers et al. (ICLR 2022, arXiv 2110.02861) claim that moments in blocks of 8 bits, in "
    "dynamic codes rounded to nearest, train as well as float32 ones, which is not tested here; "
    "Zamirai et al. (2020, arXiv 2010.06192) claim the same of bfloat16 "
    "weights with stochastic rounding, which to nearest lose most updates.",
    {{"zeros",
      "The share of second moments that 8-bit blocks round to 0 is the one that float32 moments "
      "predict, within 0.01, after four steps (derived here)."},
     {"lost",
      "The share of updates that bfloat16 masters lose is the one that float32 weights and updates "
      "predict, within 0.05 (derived here).",
      "seeds"},
     {"moments",
      "Moments in blocks of 8 bits in codes of ours, second ones floating, rounded stochastically, "
      "lose at most 0.5 points of top-1 (a contrast; published of dynamic codes, rounded to "
      "nearest).",
      "seeds"},
     {"masters",
      "Masters in bfloat16, rounded stochastically, lose at most 0.5 points (published; the margin "
      "is ours).",
      "seeds"},
     {"nearest", "Rounded to nearest they lose top-1 (published).", "seeds"},
     {"integers",
      "Second moments in integers, which become 0, lose more than 0.5 points (a contrast).",
      "seeds"},
     {"other states",
      "Moments in bfloat16, rounded stochastically, and moments in 8 bits with masters in bfloat16 "
      "lose at most 0.5 points (a contrast).",
      "seeds"}},
    {{"nets", "mlp", "mlp,lenet", "mlp,lenet", "networks to train", takes_networks()},
     data_setting("of images"),
     {"block", "256", "elements of a block", whole(1, 65536)},
     training_settings({"1", "4", "6"}, "128", {"512", "4096", "4096"}, {"500", "0", "0"}),
     seeds_setting({"1", "5", "10"})},
    run_optimizer_state};

}  // namespace numemu::experiments
