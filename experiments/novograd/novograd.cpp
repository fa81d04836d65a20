// NovoGrad: gradients over the norm of their layer, whatever a power of two makes of them, and its
// accuracy and state beside Adam and SGD in few bits (Ginsburg et al., Stochastic Gradient Methods
// with Layer-wise Adaptive Moments, 2019, arXiv 1905.11286).
#include "experiments/novograd/novograd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/net/train/optimizer.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/engine/trials.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"

namespace numemu::experiments::novograd {

namespace {

constexpr int kFloatBits = 24;  // of a significand
constexpr std::size_t kDigestDigits = 16;

/// Multiplies what updates read, and digests what they leave.
class ScaledGradients final : public net::Forwarding {
 public:
  ScaledGradients(net::Numerics& inner, int k) : Forwarding(inner), factor_(std::ldexp(1.0F, k)) {}

  double penalty(const net::Step& step, std::string_view parameter, const net::Tensor& value,
                 net::Tensor& gradient) override {
    const double loss = Forwarding::penalty(step, parameter, value, gradient);
    for (float& g : gradient.data) {
      const float scaled = g * factor_;
      lost_ += g != 0 && std::isfinite(g) && !std::isnormal(scaled);
      g = scaled;
    }
    return loss;
  }
  void update(const net::Step& step, const net::Update& update) override {
    digest_.add(update.delta->data(), update.delta->size() * sizeof(float));
    Forwarding::update(step, update);
  }
  void optimizer_state(const net::Step& step, std::string_view parameter, std::string_view name,
                       net::Tensor& state) override {
    Forwarding::optimizer_state(step, parameter, name, state);
    if (name != "second" || state.size() != 1 || !(state.data[0] > 0)) return;
    const double norm = double{std::sqrt(state.data[0])};
    least_ = least_ == 0 ? norm : std::min(least_, norm);
  }

  Scaled scaled() { return {digest_.hex().substr(0, kDigestDigits), least_, lost_}; }

 private:
  float factor_;
  double least_ = 0;
  std::int64_t lost_ = 0;
  Sha256 digest_;
};

struct Case {
  std::string optimizer;
  double epsilon;  ///< of novograd; 0: none
};

/// What the runs of a case say, by k from -K to K.
struct Answers {
  const std::vector<Scaled>& runs;
  const Scaled& expected;  ///< whose bits a run would keep

  bool changed(std::size_t i) const { return runs[i].digest != expected.digest; }
  /// With `exact` those alone whose gradients all kept their digits.
  std::int64_t count(bool exact) const {
    std::int64_t n = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) n += changed(i) && (runs[i].lost == 0 || !exact);
    return n;
  }
  std::int64_t lost() const {
    return std::ranges::count_if(runs, [](const Scaled& run) { return run.lost > 0; });
  }
  /// The largest k that changes a bit; -K - 1: none.
  std::int64_t largest(std::int64_t most) const {
    for (std::size_t i = runs.size(); i-- > 0;)
      if (changed(i)) return static_cast<std::int64_t>(i) - most;
    return -most - 1;
  }
};

}  // namespace

Scaled train_scaled(const TrainTrial& trial, const net::Dataset& data, int k) {
  net::Graph graph = initial_network(trial, data);
  net::Numerics float32;
  ScaledGradients numerics(float32, k);
  train_under(numerics, graph, trial, data);
  return numerics.scaled();
}

std::int64_t largest_k_changed(double epsilon, double least_norm) {
  const double ulp = std::ldexp(1.0, std::ilogb(least_norm) - (kFloatBits - 1));
  const double ratio = 2 * double{static_cast<float>(epsilon)} / ulp;
  const auto k = static_cast<std::int64_t>(std::ceil(portable::log2(ratio))) - 1;
  // A tie, which a power of two may reach, goes to the neighbour where the norm is odd.
  int exponent = 0;
  const bool tie = std::frexp(ratio, &exponent) == 0.5;
  return tie && std::fmod(least_norm / ulp, 2) == 1 ? k + 1 : k;
}

void check_steps(const Settings& settings, const net::Dataset& data) {
  const std::int64_t batch = settings.integer("batch"), samples = data.train_count();
  const std::int64_t most = (samples + batch - 1) / batch;
  if (settings.integer("steps") <= most) return;
  throw usage_error(
      fmt::format("--set: steps: expected at most {}, updates of {} on the {} "
                  "training samples of {}, not {}",
                  most, batch, samples, data.name(), settings.integer("steps")));
}

void add_scaling(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
                 Conclusion& conclusion) {
  const std::int64_t most = run.settings.integer("scales");
  const std::int64_t steps = run.settings.integer("steps");
  std::vector<Case> cases{{"novograd(epsilon=0)", 0}};
  for (const double epsilon : run.settings.numbers("epsilons"))
    cases.push_back({fmt::format("novograd(epsilon={})", epsilon), epsilon});
  const std::size_t own = cases.size();
  cases.push_back({"adam", 0});
  cases.push_back({"sgd", 0});
  std::vector<TypedTrial<Scaled>> trials;
  for (const Case& one : cases) {
    TrainTrial trial = training_of(run.settings, net, {.optimizer = one.optimizer});
    trial.seed = run.seed;
    trial.options.epochs = 1;
    trial.train_samples = std::min(steps * trial.options.batch, data.train_count());
    for (std::int64_t k = -most; k <= most; ++k) {
      Json point = point_of(trial, data);
      point["gradients times 2^"] = k;
      trials.push_back(
          {std::move(point), fmt::format("{}, {}, 2^{}", net, one.optimizer, k),
           [trial, &data, k] { return train_scaled(trial, data, static_cast<int>(k)); }});
    }
  }
  const std::vector<Scaled> all = run_typed(run, std::move(trials), /*at_once=*/true);
  const auto of_case = [&](std::size_t c) {
    const auto each = 2 * most + 1;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(c) * each;
    return std::vector<Scaled>(first, first + each);
  };
  const std::vector<Scaled> exact = of_case(0);
  const Scaled& plain = exact[static_cast<std::size_t>(most)];
  std::vector<std::vector<std::string>> rows;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const std::vector<Scaled> runs = of_case(c);
    // With an epsilon: beside the bits without one; another optimizer: beside its own.
    const Answers answers{runs, c < own ? plain : runs[static_cast<std::size_t>(most)]};
    const std::string& name = cases[c].optimizer;
    const bool with = cases[c].epsilon > 0;
    std::int64_t predicted = with ? largest_k_changed(cases[c].epsilon, plain.least_norm) : 0;
    predicted = std::clamp(predicted, -most - 1, most);
    const std::int64_t largest = answers.largest(most), count = answers.count(c == 0);
    if (with) {
      conclusion.add(exact_finding(fmt::format("{}: largest k that changes a bit, {}", net, name),
                                   static_cast<double>(predicted), static_cast<double>(largest),
                                   predicted == largest),
                     "epsilon");
    } else {
      const std::int64_t expected = c == 0 ? 0 : 2 * most;
      conclusion.add(exact_finding(fmt::format("{}: factors of 2^{} to 2^{} that change a bit, {}",
                                               net, -most, most, name),
                                   static_cast<double>(expected), static_cast<double>(count),
                                   expected == count),
                     c == 0 ? "scaling" : "others");
    }
    rows.push_back({name, std::to_string(count), largest < -most ? "-" : std::to_string(largest),
                    with ? std::to_string(predicted) : "-", std::to_string(answers.lost())});
  }
  const auto column = [&](const char* header, std::size_t place) {
    return StudyColumn{header, [&rows, place](std::size_t row) { return rows[row][place]; }};
  };
  conclusion.tables.push_back(study_table(
      fmt::format("Gradients of {} times 2^k, k from {} to {}, {} updates; the smallest norm of a "
                  "tensor's gradients is {:.3g}",
                  net, -most, most, steps, plain.least_norm),
      rows.size(),
      {column("optimizer", 0), column("k that change a bit", 1), column("largest of them", 2),
       column("predicted", 3), column("k with under- or overflow", 4)}));
}

namespace {

constexpr double kMargin = 0.5;         // points of top-1
constexpr double kMarginOfBits = 0.01;  // of the bits per character of a text
const std::vector<std::string> kOptimizers = {"novograd", "adam", "sgd"};

/// The state of every trained parameter: a momentum for each element and a number for each tensor.
double state_bytes(const net::Graph& graph) {
  double elements = 0, tensors = 0;
  for (const net::Parameter* parameter : graph.parameters()) {
    if (!parameter->trained) continue;
    elements += static_cast<double>(parameter->value.size());
    ++tensors;
  }
  return 4 * (elements + tensors) / elements;
}

RecipeComparison comparison_of(const ExperimentRun& run, const std::string& net) {
  RecipeComparison comparison{
      .trial = training_of(run.settings, net, {.optimizer = kOptimizers[0]}),
      .recipes = run.settings.list("recipes")};
  for (const std::string& name : kOptimizers) {
    comparison.methods.push_back({.name = name, .change = [name, net](TrainTrial& trial) {
                                    trial.options.optimizer = name;
                                    net::use_recommended_rates(trial.options, net);
                                  }});
  }
  return comparison;
}

void add_accuracy(const ExperimentRun& run, const std::string& net, const net::Dataset& data,
                  PairedClaims& claims, Conclusion& conclusion) {
  const RecipeComparison comparison = comparison_of(run, net);
  const std::vector<ComparedUnder> all = compare_methods(run, data, comparison, conclusion);
  const ComparedUnder& first = all.front();
  for (const ComparedUnder& under : all) {
    for (std::size_t m = 1; m < kOptimizers.size(); ++m) {
      const stats::PairedInterval gained = gain(under.better, 0, m);
      const double margin =
          under.accuracy()
              ? kMargin
              : kMarginOfBits * std::fabs(stats::paired_interval(first.better[m]).mean);
      claims.add(fmt::format("{}, {}: {} gained on {} by novograd, at least -{:.3g}", net,
                             under.recipe, under.unit(), kOptimizers[m], margin),
                 gained, -margin, published_in(under.recipe, "accuracy"));
      if (&under == &first) continue;
      // What the recipe costs NovoGrad, less what it costs the other, seed by seed.
      std::vector<double> own, other;
      for (std::size_t s = 0; s < under.study.seeds(); ++s) {
        own.push_back(under.better[0][s] - first.better[0][s]);
        other.push_back(under.better[m][s] - first.better[m][s]);
      }
      claims.add(fmt::format("{}: {} that {} costs {} more than novograd, at least -{:.3g}", net,
                             under.unit(), under.recipe, kOptimizers[m], margin),
                 stats::paired_interval(own, other), -margin, "few bits");
    }
  }
  const double predicted = state_bytes(initial_network(comparison.trial, data));
  for (const ComparedUnder& under : all) {
    if (under.recipe != "float32") continue;
    const double measured = under.study.mean(0, &ComparedRun::state_bytes);
    conclusion.add(exact_finding(net + ": bytes of state for each parameter", predicted, measured,
                                 std::fabs(predicted - measured) < 1e-9),
                   "state");
    const double adam = under.study.mean(1, &ComparedRun::state_bytes);
    conclusion.sentences.push_back(
        fmt::format("{}: novograd keeps {:.4f} bytes of state for each parameter, adam {:.2f}, sgd "
                    "{:.2f}.",
                    net, measured, adam, under.study.mean(2, &ComparedRun::state_bytes)));
  }
}

Conclusion run_novograd(const ExperimentRun& run) {
  Conclusion conclusion;
  const std::vector<std::string> recipes = run.settings.list("recipes");
  if (recipes.front() != "float32")
    throw usage_error("--set: recipes: expected float32 first, not " + recipes.front());
  const net::Dataset data = load_data(run);
  check_steps(run.settings, data);
  for (const std::string& net : run.settings.list("nets"))
    require_trainable(run, data, comparison_of(run, net));
  PairedClaims claims;
  for (const std::string& net : run.settings.list("nets")) {
    add_scaling(run, net, data, conclusion);
    add_accuracy(run, net, data, claims, conclusion);
  }
  conclusion.add(claims.judged());
  return conclusion;
}

}  // namespace

}  // namespace numemu::experiments::novograd

namespace numemu::experiments {

extern const Experiment experiment_novograd = {
    "novograd",
    "does one second moment per layer make training blind to powers of two on its gradients, and "
    "what does it cost in accuracy and state",
    "Ginsburg et al. (2019, arXiv 1905.11286) claim that NovoGrad trains as well as SGD or better "
    "than Adam, with half of Adam's memory, and that it is robust to learning rate and "
    "initialisation.",
    {{"scaling",
      "Without epsilon, gradients times any power of two give updates of the same bits, as long as "
      "none under- or overflows (derived here)."},
     {"epsilon",
      "With an epsilon the largest power that changes a bit is the one where epsilon reaches half "
      "an ulp of the smallest norm of a float32 run (derived here)."},
     {"others", "Every factor but 1 changes updates of Adam and of SGD (a contrast)."},
     {"state",
      "One number per element and one per tensor are kept, half of Adam's state (published)."},
     {"accuracy",
      "NovoGrad loses at most 0.5 points of top-1, or 1 % of the bits per character, to Adam and "
      "to SGD in float32 (published; the margin is ours).",
      "seeds"},
     {"few bits",
      "Under recipes of few bits the same holds, and they cost NovoGrad at most so much more than "
      "they cost Adam and SGD (a contrast).",
      "seeds"}},
    {{"nets", "mlp", "networks to train", takes_networks()},
     data_setting("of images"),
     {"scales", "20", "largest k, and of -k, of the factors 2^k on all gradients", whole(1, 60)},
     {"epsilons", "1e-8,1e-5", "1e-8,1e-6,1e-4", "1e-10,1e-8,1e-6,1e-4",
      "epsilons that are added to norms", reals(1e-30, 1)},
     {"steps", "4", "16", "16", "updates of the trainings with factors", whole(1, 10'000)},
     {"recipes", "float32", "float32,mxfp8-train,mxfp4-train", "float32,mxfp8-train,mxfp4-train",
      "recipes, float32 first", list_of()},
     training_settings({"1", "4", "4"}, "64", {"1024", "4096", "4096"}, {"500", "4000", "4000"}),
     seeds_setting({"1", "5", "10"})},
    novograd::run_novograd};

}  // namespace numemu::experiments
