#include "experiments/novograd/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

}  // namespace numemu::experiments::novograd
