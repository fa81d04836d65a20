// Training and tuning: networks from scratch, and trained ones made fit for a recipe.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/networks.hpp"
#include "emu/net/kept_bytes.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/report/measure.hpp"
#include "policies/recipe/parameter_bytes.hpp"

namespace numemu::api {

struct TrainRequest {
  std::string net = "lenet", data = {}, recipe = {}, out = "out/train";
  std::string store = "f32";     ///< type of the stored weights: f32, f16, bf16
  net::TrainOptions train = {};  ///< but for what follows here
  net::DataView view = {};
  std::int64_t save_every = 0;  ///< steps between two states; 0: one after each epoch
  bool fresh = false;           ///< the state in the folder is ignored

  // Without these the recipe's, else what serves network and optimizer.
  std::optional<std::string> optimizer = {};
  std::optional<net::Augmentation> augment = {};
  std::optional<double> learning_rate = {}, weight_decay = {}, clip = {};
  std::optional<std::int64_t> warmup = {};
  std::int64_t seed = 0;
};
/// What training shows while it runs.
struct TrainHooks {
  /// Once, with the steps of the whole run.
  std::function<void(const net::RunState&, std::int64_t steps)> on_start = [](const net::RunState&,
                                                                              std::int64_t) {};
  std::function<void(std::int64_t step, double loss)> on_step = [](std::int64_t, double) {};
  /// `stage`: of the recipe; nothing without stages.
  std::function<void(const net::EpochMetrics&, const Dataset&, std::optional<std::size_t> stage)>
      on_epoch = [](const net::EpochMetrics&, const Dataset&, std::optional<std::size_t>) {};
  /// After the last step, before the test.
  std::function<void()> on_end = [] {};
};
struct Trained {
  std::string checkpoint;  ///< path
  Recipe recipe;
  Dataset dataset;
  Evaluation tested = {};     ///< on the test split, under the recipe's last stage
  stats::Interval top1 = {};  ///< at 95 %; not finite where there is none
  std::optional<net::KeptBytes::Sums> kept = {};  ///< for backward, in the last epoch
  /// Stored of each parameter, and in float32; nothing where all of it is float32.
  std::optional<policies::ParameterBytes> stored = {};
  policies::ParameterBytes stored_float32 = {};
  std::optional<std::size_t> stage = {};  ///< in which training ended
  std::size_t stages = 0;
};
/// Trains from scratch or goes on where a killed run stopped: writes the checkpoint,
/// metrics.jsonl and the state of the run into `out`. The same bytes for the same request.
Trained train(const TrainRequest&, const Context&, const TrainHooks& = {});

struct TuneRequest {
  std::string net = {}, data = {}, recipe = {};
  std::string calibrate_on = {};  ///< steps read the samples of this data set; "": of `data`
  std::string steps = "calibrate,batch_norm";  ///< docs/tune.md
  std::string out = "out/tune";
  std::int64_t samples = 512;  ///< of calibration, the first ones
  /// Of the validation split, which no step reads, to measure on; 0: 1000, or all of fewer.
  std::int64_t images = 0;
  std::int64_t seed = 0;
  bool keep_batch_norm = false;  ///< else it is folded into the weights
  bool fresh = false;            ///< the state in the folder is ignored
};
/// What tuning changed: SQNR of layers and output, and metrics, before and after.
struct Tuned {
  struct Top1 {
    double value = 0, difference = 0;  ///< from float32
    stats::Interval interval = {}, difference_interval = {};
  };
  struct Metrics {
    std::int64_t n = 0;  ///< targets
    double loss = 0;
    experiments::JudgedFigure figure;  ///< that the task is judged by, beside float32
    std::optional<Top1> top1 = {};     ///< of tasks with classes
  };
  struct Decibels {
    std::string layer;
    double before = 0, after = 0;
  };

  std::string checkpoint;  ///< path
  Recipe recipe;
  std::int64_t calibration_samples = 0;
  std::vector<std::pair<std::string, std::string>> steps;  ///< with what each did
  std::vector<std::string> notes;  ///< what readers of the figures must know
  bool validation = true;          ///< measured on this split, else on that of calibration
  bool unread = true;              ///< by the steps; another set may hold the samples
  std::int64_t samples = 0, noise_samples = 0;  ///< of the metrics and of the SQNR
  /// Nothing without validation samples.
  std::optional<Metrics> float32 = {}, before = {}, after = {};
  std::optional<experiments::JudgedFigure> gain = {};  ///< of `after` over `before`
  std::vector<Decibels> layers;
  Decibels output;
};
/// Runs the steps or goes on where a killed run stopped; writes the checkpoint and the state of the
/// run into `out`. The same bytes for the same request. Context::on_work counts steps.
Tuned tune(const TuneRequest&, const Context&);

}  // namespace numemu::api
