// A step on ghost batches beside one of workers whose normalisation is their own.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "emu/stats/squares.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/ghost_bn/questions.hpp"

namespace numemu::experiments::ghost_bn {
namespace {

/// Relative distances of what two ways to train one step leave.
struct Apart {
  double updates = 0, running = 0;  ///< of the updates, of the running statistics

  static void fields(auto& self, const auto& visit) {
    visit("updates", self.updates);
    visit("running", self.running);
  }
};

/// Updates of a step, by parameter.
class Recorded final : public net::Forwarding {
 public:
  Recorded(net::Numerics& inner, std::vector<std::vector<float>>& updates)
      : Forwarding(inner), updates_(&updates) {}
  void update(const net::Step& step, const net::Update& update) override {
    updates_->push_back(*update.delta);
    Forwarding::update(step, update);
  }

 private:
  std::vector<std::vector<float>>* updates_;
};

/// |a - b| / |a| over all tensors.
double distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<float>>& b) {
  double difference = 0, whole = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    const auto n = static_cast<std::int64_t>(a[p].size());
    difference += stats::sum_of_squared_differences(n, a[p].data(), b[p].data());
    whole += stats::sum_of_squares(n, a[p].data());
  }
  return std::sqrt(difference / whole);
}

Apart apart(const TrainTrial& ghosts, const TrainTrial& workers, const net::Dataset& data) {
  std::vector<std::vector<float>> updates[2], running[2];
  for (const int which : {0, 1}) {
    TrainTrial trial = which == 0 ? ghosts : workers;
    trial.around = {"updates", [&](net::Numerics& inner) {
                      return std::make_unique<Recorded>(inner, updates[which]);
                    }};
    trial.on_step = [&](const net::Graph& graph, std::int64_t) {
      for (const net::Parameter* parameter : graph.parameters())
        if (!parameter->trained) running[which].push_back(parameter->value.data);
    };
    run_train_trial(trial, data);
  }
  return {distance(updates[0], updates[1]), distance(running[0], running[1])};
}

}  // namespace

void add_workers(const ExperimentRun& run, const net::Dataset& data, Conclusion& conclusion) {
  TrainTrial ghost = training_of(run.settings, run.settings.text("net"), {.optimizer = "sgd"});
  ghost.seed = run.seed;
  ghost.train_samples = ghost.options.batch = batches(run.settings).large;
  ghost.eval_samples = 1;
  ghost.options.epochs = 1;
  ghost.options.weight_decay = ghost.options.clip = 0;
  TrainTrial workers = ghost;
  ghost.recipe = batches(run.settings).ghosts();
  workers.options.workers = batches(run.settings).ratio();
  const std::vector<Apart> found =
      run_cases<Apart>(run, std::vector<int>{0}, [&](int) -> TypedTrial<Apart> {
        return {{{"ghost batches", point_of(ghost, data)}, {"workers", point_of(workers, data)}},
                "ghost batches and workers",
                [=, &data] { return apart(ghost, workers, data); }};
      });
  // A sum over the batch has that many roundings of 2^-24, whose signs are independent, so that
  // their root is what they come to; the rest is room for addends that cancel.
  const double order = static_cast<double>(ghost.options.batch) * 0x1p-24;
  const std::string what = fmt::format(
      "{} workers and ghost batches of {}: ", workers.options.workers, batches(run.settings).small);
  conclusion.add(exact_finding(what + "relative distance of updates", 0, found[0].updates,
                               found[0].updates <= order, at_most(order)),
                 "workers");
  // Workers round the running values once each, ghost batches all together.
  const double folds = static_cast<double>(workers.options.workers + 1) * 0x1p-24;
  conclusion.add(exact_finding(what + "relative distance of running statistics", 0,
                               found[0].running, found[0].running <= folds, at_most(folds)),
                 "workers");
}

}  // namespace numemu::experiments::ghost_bn
