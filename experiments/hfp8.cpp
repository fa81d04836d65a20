// Training in hybrid 8-bit floats: 1-4-3 forward, 1-5-2 backward, 1-6-9 sums in chunks, round-off
// residuals, re-estimated statistics (HFP8, Sun et al., NeurIPS 2019).
#include "experiments/engine/experiment.hpp"
#include "experiments/hfp8/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_hfp8(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("numbers and sums");
  hfp8::add_rounding(run, conclusion);
  hfp8::add_sums(run, conclusion);
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  hfp8::add_training(run, data, conclusion);
  hfp8::add_norms(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_hfp8;
const Experiment experiment_hfp8 = {
    "hfp8",
    "does training with 8-bit floats of two kinds, 16-bit sums in chunks and round-off residuals "
    "end as accurate as float32",
    "Sun et al. (NeurIPS 2019) claim that 1-4-3 forward and 1-5-2 backward with 1-6-9 sums in "
    "chunks of 64 train as accurately as float32, that a residual keeps the updates that 1-4-3 "
    "weights would lose, and that re-estimated statistics of batch normalisation repair networks "
    "quantized after training.",
    {{"rounding", "The noise of normal numbers is the integral over the cells of their format."},
     {"constant", "It is 0.0451 4^-m within 2 %, that of log-uniform mantissas."},
     {"stall", "Ones added one by one stall at 1,024, in chunks of C at 1,024 C."},
     {"sums", "Sums of random numbers follow the walk over binades within 2 %."},
     {"layer",
      "Re-estimated statistics of a linear layer take away the share of its noise that shifts "
      "channels, within 0.05."},
     {"network", "Re-estimated statistics raise the top-1 of a quantized network."},
     {"accuracy",
      "With float32 or 1-6-9 masters, or 1-4-3 masters with a residual, training loses at most 0.5 "
      "points of top-1."},
     {"lost", "Masters of 1-4-3 rounded to nearest lose top-1."},
     {"residual", "A residual repairs them."},
     {"forward", "1-4-3 forward is more accurate than 1-5-2."},
     {"chunks", "Sums in chunks of 64 train more accurately than sums one by one."},
     {"errors", "Errors of small losses need the range of 1-5-2."},
     {"updates",
      "The share of updates that 1-4-3 masters lose is that of changes below half an ulp in the "
      "float32 run, within 0.05."}},
    {{"samples", "100000", "1000000", "10000000", "normal numbers rounded to each format"},
     {"lengths", "1024,4096", "256,1024,4096,16384,65536", "256,1024,4096,16384,65536,262144",
      "numbers of a sum"},
     {"chunks", "1,64", "1,16,64,256", "1,4,16,64,256,1024", "additions of a chunk; 1: one by one"},
     {"repeats", "8", "64", "256", "sums of random numbers"},
     {"layer_rows", "1000", "10000", "20000", "samples of the linear layer"},
     {"layers", "4", "16", "64", "draws of the linear layer"},
     {"norm_net", "mobilenet-small", "mobilenet-small", "mobilenet-small",
      "network whose statistics are re-estimated"},
     {"norm_formats", "hfp8_e4m3", "hfp8_e4m3,hfp8_e5m2,int4", "hfp8_e4m3,hfp8_e5m2,int6,int5,int4",
      "formats of its weights and activations"},
     {"norm_image_size", "14", "14", "14", "height and width of its images"},
     {"norm_epochs", "1", "2", "4", "epochs of its training in float32"},
     {"norm_batch", "32", "32", "32", "images of a step of it"},
     {"norm_train_samples", "128", "2048", "4096", "its training images"},
     {"norm_eval_samples", "100", "1000", "0", "test images it sees; 0: all"},
     {"norm_samples", "128", "512", "512", "calibration images of the statistics"},
     {"norm_seeds", "1", "3", "5", "seeds of its training"},
     {"net", "mlp", "mlp", "mlp", "network to train in few bits"},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images"},
     {"small_losses", "6", "2,4,6", "2,4,6,8", "k of losses scaled by 2^-k"},
     {"look_every", "4", "8", "32", "steps between two looks at the updates"},
     {"optimizer", "sgd", "sgd", "sgd", "optimizer"},
     {"epochs", "1", "3", "8", "epochs of training"},
     {"batch", "128", "128", "128", "images of a step"},
     {"train_samples", "1024", "3072", "8192", "training images; 0: all"},
     {"eval_samples", "500", "4000", "0", "test images; 0: all"},
     {"seeds", "1", "3", "5", "seeds that methods are paired by"}},
    run_hfp8};

}  // namespace numemu::experiments
