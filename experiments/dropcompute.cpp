// Workers that stop computing at a threshold of time: what it gains and what it costs (DropCompute,
// Giladi et al., NeurIPS 2023).
#include "emu/stats/latency.hpp"
#include "experiments/dropcompute/steps.hpp"
#include "experiments/dropcompute/training.hpp"
#include "experiments/workers/training_with_workers.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_dropcompute(const ExperimentRun& run) {
  Conclusion conclusion;
  dropcompute::add_steps(run, conclusion);
  dropcompute::add_training(run, conclusion);
  return conclusion;
}

void check_law(const std::string& text) { stats::latency_law(text); }

std::vector<Setting> dropcompute_settings() {
  std::vector<Setting> settings = workers::with_training(
      {{"laws", "normal(1,0.4),injected(1,1)", "normal(1,0.4),lognormal(1,0.4),injected(1,1)",
        "normal(1,0.4),lognormal(1,0.4),injected(1,1),exponential(1)",
        "laws of micro-batch latency", list_of(check_law)},
       {"step_workers", "2,200", "2,8,64,200,1024,10000,100000",
        "2,8,64,200,1024,10000,100000,1000000", "numbers of workers of simulated steps",
        wholes(2, 100'000'000)},
       {"micro_batches", "12", "12", "12", "micro-batches that a worker accumulates in a step",
        whole(1, 64)},
       {"overhead", "0.5", "0.5", "0.5", "time of a step that no threshold shortens", real(0, 1e9)},
       {"warm", "50", "50", "50", "first steps, from which the automatic threshold is chosen",
        whole(1, 10'000)},
       {"steps", "2000", "20000", "20000", "most steps measured after them", whole(1, 1'000'000)},
       {"draws", "5e6", "5e7", "5e8", "most latencies drawn for them, at 50 steps or more",
        real(1, 1e12)},
       {"shares", "0.1", "0.1,0.25", "0.1,0.25", "of training: micro-batches dropped at random",
        reals(0.001, 0.99)},
       {"threshold", "10.5", "10.5", "10.5", "of another training: time at which workers stop",
        real(1e-12, 1e12)},
       {"train_law", "normal(1,0.4)", "normal(1,0.4)", "normal(1,0.4)", "law of its latencies",
        text_of(check_law)}},
      {workers::Group::images, workers::Group::fine_tuning});
  for (Setting& setting : settings) {  // 4 samples for each of 4 x 12 micro-batches
    const std::string_view key = setting.key;
    if (key == "batch" || key == "tuned_batch")
      setting.smoke = setting.standard = setting.full = "192";
  }
  return settings;
}

}  // namespace

extern const Experiment experiment_dropcompute;
const Experiment experiment_dropcompute = {
    "dropcompute",
    "what do many workers gain when each stops computing at a threshold of time and joins the "
    "exchange with the micro-batches that it has, and what does training lose",
    "Giladi et al. (NeurIPS 2023, arXiv 2306.10598) claim that dropping the slowest tenth of the "
    "micro-batches makes synchronous steps faster, the more the more workers, without loss of "
    "accuracy.",
    {{"normal",
      "Under normal latencies the published effective speed-up at its best threshold is that of "
      "simulated steps within 0.5 % (published; the margin is ours)."},
     {"exact",
      "The exact law of sums gives the step time, the share kept, and the step time where the "
      "clock is read between micro-batches, of every law (derived here)."},
     {"laws",
      "Under other laws the speed-up of the exact law at its best threshold holds within 0.5 % "
      "(derived here)."},
     {"tails",
      "With 200 workers and the published injected delays the step time of the normal formula is 7 "
      "% low (derived here)."},
     {"automatic",
      "The threshold chosen by the published rule from the first steps reaches 99.5 % of the best "
      "predicted speed-up (published; the margin is ours)."},
     {"granularity",
      "Where the clock is read at the end of each micro-batch, at most half of the gain is left (a "
      "contrast)."},
     {"expected",
      "Dropped at random, the share of micro-batches computed is 1 less the rule's share (derived "
      "here)."},
     {"accuracy",
      "Dropping 10 % of the micro-batches loses at most 0.5 points of top-1 (published; the margin "
      "is ours).",
      "seeds"},
     {"more drops", "Dropping more than 10 % loses at most 0.5 points, too (a contrast).",
      "seeds"}},
    dropcompute_settings(),
    run_dropcompute,
    workers::check_training};

}  // namespace numemu::experiments
