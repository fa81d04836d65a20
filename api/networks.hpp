// Networks: open one with its data and a recipe, evaluate, run on arrays, export, train, tune it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/context.hpp"
#include "api/recipes.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/kept_bytes.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/train.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/gate.hpp"
#include "experiments/report/measure.hpp"
#include "formats/storage/json.hpp"
#include "policies/bits/effective_bits.hpp"

namespace numemu::api {

using experiments::TrainedNet;
using net::Dataset, net::Evaluation, net::Graph, net::Tensor;

/// Members of requests are named after options of the commands, and errors name these. A trained
/// network, its data set and a recipe, as on the command line.
struct OpenRequest {
  std::string net = {}, data = {};
  std::string recipe = {};        ///< a file, a shipped recipe or JSON; "" is float32
  std::string calibrate_on = {};  ///< the data set that calibrates; "" is `data`
  std::int64_t image_size = 0;    ///< 0: as stored
  bool fold_batch_norm = false;

  /// The recipe in messages.
  std::string where() const { return recipe.empty() ? "recipe" : recipe_where(recipe); }
};

/// The data set, seen as asked for.
Dataset open_data(const OpenRequest&, const Context&);
TrainedNet open_network(const OpenRequest&, const Dataset&, const Context&);

/// They fit each other.
struct Session {
  OpenRequest names;
  Dataset dataset;
  TrainedNet trained;
  Recipe whole;   ///< as given, with its stages
  Recipe recipe;  ///< bound to the network
};
/// Recipe, data set, network, and the recipe on the network, in this order. Throws Error naming
/// what is missing or does not fit.
Session open(const OpenRequest&, const Context&);

struct EvaluateRequest {
  std::vector<std::string> metrics = {};  ///< net::score_names(); without any those of the data set
  std::optional<experiments::Gate> gate = {};
  std::int64_t images = 0;  ///< of the test split, the first ones; 0: all
  bool predictions = true;  ///< beside what is measured
  bool fresh = false;       ///< the float32 baseline is computed again
};
struct Evaluated {
  experiments::Row row;  ///< of schema version 1 (docs/sweeps.md)
  bool apart = false;    ///< the data set has calibration samples, which noise is measured on
};
/// After an Error the session is to be opened again.
Evaluated evaluate(Session&, const EvaluateRequest&, const Context&);
/// Opens, too: a request that does not fit the data is refused before the network is read.
Evaluated evaluate(const OpenRequest&, const EvaluateRequest&, const Context&);

/// A model on arrays of one's own, in float32 or under a recipe.
struct InferRequest {
  std::string model = {};            ///< NAME, FILE, or NAME=FILE
  std::string recipe = {};           ///< "" is float32
  std::vector<std::string> in = {};  ///< "[input=]x.npy", samples first
  /// Inputs in memory, which the caller keeps through the call; "" names the only one.
  std::span<const net::NamedTensor> arrays = {};
  std::vector<std::string> out = {};           ///< "[output=]y.npy" or ".safetensors"
  std::vector<std::string> keep = {};          ///< names of outputs that need no file
  bool keep_all = false;                       ///< every output
  std::vector<std::string> calibrate_on = {};  ///< arrays as in `in`, or a data set; none: `in`
  std::span<const net::NamedTensor> calibration = {};     ///< the same as arrays in memory
  std::string normalize = {}, mean = {}, deviation = {};  ///< of arrays of uint8
  std::vector<std::string> metrics = {};                  ///< of the first output against float32
  std::int64_t batch = 16;
  bool fold_batch_norm = false;
  bool noise = true;        ///< is measured layer by layer,
  bool predictions = true;  ///< and predicted
  bool digests = false;     ///< of inputs, outputs and weights; memory, too
};
struct Inferred {
  struct Array {
    std::string name, file;  ///< of the input ("": the only one) or output, "" without a file
    net::Shape shape;
    std::string digest;  ///< of the float32 elements
  };
  struct Output : Array {
    /// By layer what is NaN or infinite; nothing where all is finite.
    std::optional<experiments::LostNumbers> not_finite;
    std::int64_t samples_not_finite = 0;
    Tensor values;
  };
  /// The metrics, prediction and layers of a row, on the first samples; counts of all samples.
  struct Noise {
    std::int64_t samples = 0;
    experiments::Row row;
  };
  /// Of static scales.
  struct Calibration {
    std::int64_t samples = 0, available = 0;
    std::string from, digest;
    std::int64_t not_finite = 0;  ///< samples that are left out
  };
  /// NaN in the inputs, and in how many samples they are.
  struct NanCount {
    std::int64_t elements = 0, samples = 0;
    /// Samples with NaN whose outputs have none: a format without NaN converted it to a number,
    /// which the outputs do not show.
    std::int64_t hidden = 0;
  };
  /// Bytes: of the weights, of the largest value, and the most that the process had so far.
  struct Memory {
    std::int64_t weights = 0, largest_activation = 0, peak = 0;
  };

  std::string model, weights;  ///< as asked, and its digest
  std::vector<Array> inputs;
  std::optional<Calibration> calibration;
  std::vector<Output> outputs;  ///< those with a file or kept, by name
  std::int64_t samples = 0;
  NanCount nan;
  std::optional<Noise> noise;
  std::vector<experiments::RowScore> scores;
  std::optional<Recipe> recipe;
  std::vector<std::string> notes;  ///< told, too, once the files are written
  Memory memory;
  std::vector<std::pair<std::string, double>> seconds;  ///< by part, of the caller's clock
};
Inferred infer(const InferRequest&, const Context&);
/// As the command prints it with --json.
Json json_of(const Inferred&);

/// A model prepared once for samples that come piece by piece: the outputs have the bits of one
/// infer() on all of them where every piece but the last has a multiple of `batch` samples.
class Inference {
 public:
  /// Opens the model, binds the recipe and calibrates it. The arrays of the request give the
  /// extents that the model leaves open, and calibrate where nothing else is given; they are not
  /// run.
  Inference(const InferRequest&, const Context&);
  ~Inference();
  Inference(const Inference&) = delete;
  Inference& operator=(const Inference&) = delete;

  /// The kept outputs of the next samples, as infer() has them.
  std::map<std::string, Tensor> run(const std::vector<net::NamedTensor>& inputs);
  /// Of the calibration; nothing where none is needed.
  const std::optional<Inferred::Calibration>& calibration() const;

  struct Parts;  ///< of infer(), too

 private:
  std::unique_ptr<Parts> parts_;
};

struct ExportRequest {
  std::string out = {};  ///< .onnx, or .safetensors with codes and scales
  /// Arrays that calibrate in place of a data set, as in InferRequest: the network is then that of
  /// an ONNX file, at their shapes.
  std::vector<std::string> in = {};
  std::int64_t samples = 64;  ///< of calibration, on which the file is compared with the recipe
};
/// Outputs of the file, read back, beside those of the recipe.
struct Agreement {
  /// `outputs`: elements of all; the class is that of the first.
  std::int64_t samples = 0, same_bits = 0, same_class = 0, outputs = 0;
  std::vector<std::string> names = {};  ///< of the outputs; one may be nameless
  double largest = 0, difference = 0;   ///< magnitude of an output, and of a difference
  std::vector<std::string> notes = {};  ///< what the file computes otherwise than the recipe
};
Agreement export_network(const OpenRequest&, const ExportRequest&, const Context&);

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
  net::Ranks* ranks = nullptr;  ///< processes that share the workers; null: this one alone
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
/// Figures of a network on a split, beside the original one in float32.
struct TaskMetrics {
  struct Top1 {
    double value = 0, difference = 0;  ///< from float32
    stats::Interval interval = {}, difference_interval = {};
  };
  std::int64_t n = 0;  ///< targets
  double loss = 0;
  experiments::JudgedFigure figure;  ///< that the task is judged by, beside float32
  std::optional<Top1> top1 = {};     ///< of tasks with classes
};
struct Trained {
  std::string checkpoint;  ///< path
  Recipe recipe;
  Dataset dataset;
  Evaluation tested = {};     ///< on the test split, under the recipe's last stage
  stats::Interval top1 = {};  ///< at 95 %; not finite where there is none
  /// Of a trained network that went on under a recipe, on the test split: `original`, before any
  /// such training, in float32; under the recipe `before` the first step and `after` the last one.
  struct Compared {
    TaskMetrics original, before, after;
    experiments::JudgedFigure gain;  ///< of `after` over `before`
  };
  std::optional<Compared> compared = {};
  std::optional<experiments::JudgedFigure> figure = {};  ///< of tasks without classes
  std::optional<net::KeptBytes::Sums> kept = {};         ///< for backward, in the last epoch
  /// Stored of each parameter, and in float32; nothing where all of it is float32.
  std::optional<policies::ParameterBytes> stored = {};
  policies::ParameterBytes stored_float32 = {};
  std::optional<std::size_t> stage = {};  ///< in which training ended
  std::size_t stages = 0;

  /// The share of right answers in the test.
  double accuracy() const {
    return static_cast<double>(tested.correct) / static_cast<double>(tested.n);
  }
};
/// Trains from scratch or goes on where a killed run stopped: writes the checkpoint,
/// metrics.jsonl and the state of the run into `out`. The same bytes for the same request, for any
/// number of ranks; rank 0 alone writes, tests and has a result beside recipe and data set.
Trained train(const TrainRequest&, const Context&, const TrainHooks& = {});
/// As the command prints it with --json.
Json json_of(const Trained&);

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
  using Metrics = TaskMetrics;
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
/// As the command prints it with --json.
Json json_of(const Tuned&);

}  // namespace numemu::api
