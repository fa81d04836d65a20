// Networks: open one with its data set and a recipe, evaluate it, run it on arrays, export it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/context.hpp"
#include "api/recipes.hpp"
#include "emu/net/data/view.hpp"
#include "experiments/engine/gate.hpp"

namespace numemu::api {

using experiments::TrainedNet;
using net::Dataset, net::Evaluation, net::Graph, net::Tensor;

// Members of requests are named after options of the commands, and errors name these.

/// A trained network, its data set and a recipe, as on the command line.
struct OpenRequest {
  std::string net = {}, data = {};
  std::string recipe = {};        ///< a file or a shipped recipe; "" is float32
  std::string calibrate_on = {};  ///< the data set that calibrates; "" is `data`
  std::int64_t image_size = 0;    ///< 0: as stored
  bool fold_batch_norm = false;

  /// The recipe in messages.
  std::string where() const { return recipe.empty() ? "recipe" : recipe; }
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
  Json row;            ///< of schema version 1 (docs/sweeps.md)
  bool apart = false;  ///< the data set has calibration samples, which noise is measured on
};
Evaluated evaluate(Session, const EvaluateRequest&, const Context&);
/// Opens, too: a request that does not fit the data is refused before the network is read.
Evaluated evaluate(const OpenRequest&, const EvaluateRequest&, const Context&);

/// A model on arrays of one's own, in float32 or under a recipe.
struct InferRequest {
  std::string model = {};                      ///< NAME, FILE, or NAME=FILE
  std::string recipe = {};                     ///< "" is float32
  std::vector<std::string> in = {};            ///< "[input=]x.npy", samples first
  std::vector<std::string> out = {};           ///< "[output=]y.npy" or ".safetensors"
  std::vector<std::string> keep = {};          ///< names of outputs that need no file
  std::vector<std::string> calibrate_on = {};  ///< arrays as in `in`, or a data set; none: `in`
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
    Json not_finite;  ///< counts by layer of what is NaN or infinite; null where all is finite
    Tensor values;
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

  std::string weights;  ///< digest
  std::vector<Array> inputs;
  std::optional<Calibration> calibration;
  std::vector<Output> outputs;  ///< those with a file or kept, by name
  std::int64_t samples = 0;
  NanCount nan;
  Json noise;   ///< "noise_samples", "metrics", "predicted", "layers" of a row; null without
  Json scores;  ///< those of a row; null without metrics
  std::optional<Recipe> recipe;
  std::vector<std::string> notes;  ///< told, too, once the files are written
  Memory memory;
  std::vector<std::pair<std::string, double>> seconds;  ///< by part, of the caller's clock
};
Inferred infer(const InferRequest&, const Context&);

struct ExportRequest {
  std::string out = {};       ///< .onnx, or .safetensors with codes and scales
  std::int64_t samples = 64;  ///< of calibration, on which the file is compared with the recipe
};
/// Outputs of the file, read back, beside those of the recipe.
struct Agreement {
  std::int64_t samples = 0, same_bits = 0, same_class = 0, outputs = 0;
  double largest = 0, difference = 0;  ///< magnitude of an output, and of a difference
};
Agreement export_network(const OpenRequest&, const ExportRequest&, const Context&);

}  // namespace numemu::api
