// Weights trained toward a uniform law: does a quantizer whose step, bits or rounding of the step
// change hurt them less (KURE, Shkolnik et al., NeurIPS 2020, arXiv 2002.07686)?
#include <fmt/format.h>

#include <filesystem>

#include "experiments/kure/laws.hpp"
#include "experiments/kure/parts.hpp"
#include "formats/error.hpp"
#include "formats/storage/npy.hpp"

namespace numemu::experiments {
namespace kure {

std::string codebook_file(const ExperimentRun& run, int bits) {
  std::filesystem::create_directories(run.out);
  const std::string file = fmt::format("{}/levels-{}.npy", run.out, bits);
  const std::vector<double> entries = levels(bits);
  write_npy(file, ArrayType::float64, {static_cast<std::int64_t>(entries.size())}, entries.data());
  return file;
}

}  // namespace kure

namespace {

Conclusion run_kure(const ExperimentRun& run) {
  Conclusion conclusion;
  kure::add_curves(run, conclusion);
  kure::add_training(run, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_kure;
const Experiment experiment_kure = {
    "kure",
    "are weights of uniform law less sensitive to the step, the bits and a rounded step of their "
    "quantizer, and does training toward that law gain accuracy",
    "Shkolnik et al. (NeurIPS 2020, arXiv 2002.07686) claim that a penalty on the kurtosis makes "
    "weights near uniform, and that these are less sensitive to changes of the quantizer than "
    "normal "
    "weights, so that few bits and steps that are powers of two cost less accuracy.",
    {{"curves", "The error over the step follows the closed forms within 1 %."},
     {"published curve",
      "Beyond the end of the uniform law the error is D^2 / 12, as published, within 1 %."},
     {"optimum", "Best steps and least errors are those of the closed forms."},
     {"theorem, published step",
      "At the published step 2a / 2^M the second derivative of the uniform law's error is below "
      "the "
      "normal law's."},
     {"theorem, best step",
      "At the step of least error the uniform law is less sensitive than the normal law too."},
     {"error", "The error itself is lower under the uniform law."},
     {"kurtosis", "The penalty brings the kurtosis of every weight to within 0.1 of 1.8."},
     {"accuracy", "Networks trained with the penalty keep more top-1 when weights are quantized."},
     {"power of two",
      "Rounding the step to a power of two costs networks trained with the penalty less top-1."}},
    {{"bits", "2,4", "2,3,4,5,6", "2,3,4,5,6,8", "of the quantizer on numbers of known laws"},
     {"factors", "0.7,1,1.3", "0.7,0.85,1,1.15,1.3", "0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.5,2",
      "steps over the best step"},
     {"samples", "200000", "8000000", "32000000", "numbers of each law"},
     {"net", "mlp", "mlp", "mlp", "network to train"},
     {"data", "glyphs", "glyphs", "glyphs", "data set"},
     {"penalty", "1", "1", "1", "lambda, divided by the number of weights"},
     {"accuracy_bits", "2", "2,3,4", "2,3,4", "of the weights"},
     {"epochs", "1", "6", "12", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "2048", "16384", "16384", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "10", "20", "seeds that networks are paired by"}},
    run_kure};

}  // namespace numemu::experiments
