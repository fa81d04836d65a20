// Recipes that train today's networks in few bits: loss over steps beside float32, and the noise of
// their weight gradients predicted and measured.
#include "experiments/training_recipes/parts.hpp"

namespace numemu::experiments {
namespace {

Conclusion run_training_recipes(const ExperimentRun& run) {
  Conclusion conclusion;
  run.say("loading " + run.settings.text("data"));
  const net::Dataset data = net::load_dataset(run.settings.text("data"), run.folders.cache);
  training_recipes::add_recipes(run, data, conclusion);
  return conclusion;
}

}  // namespace

extern const Experiment experiment_training_recipes;
const Experiment experiment_training_recipes = {
    "training-recipes",
    "do the recipes that train today's networks in 16, 8 and 4 bits keep the loss of float32, and "
    "does the noise of their weight gradients foretell what they lose",
    "Publications of FP8, MXFP8, MXFP4 and NVFP4 training (docs/recipes.md) claim losses within "
    "about 1 % of 16 or 32 bits without divergence.",
    {{"noise",
      "The noise that a recipe's rounding adds to weight gradients in the first step is that of "
      "its formats under the float32 tensors."},
     {"ranking",
      "The more noise is predicted in the weight gradients, the more a recipe loses (Spearman)."},
     {"loss", "A recipe ends at most 1 % above the bits per character of float32."},
     {"stable",
      "No recipe's mean loss of `spike_steps` steps rises by more than `spike` above the least "
      "such "
      "mean before."}},
    {{"net", "char-transformer", "char-transformer", "char-transformer", "network to train"},
     {"data", "chain", "chain", "chain", "text to train on"},
     {"recipes", "fp8-current,mxfp4-train", training_recipes::kRecipes, training_recipes::kRecipes,
      "shipped recipes or files, compared with float32"},
     {"epochs", "1", "1", "1", "of training"},
     {"lr", "0.004", "0.004", "0.004", "learning rate of AdamW, with a cosine schedule"},
     {"warmup", "0", "20", "20", "steps of the rising learning rate"},
     {"train_samples", "6", "1920", "1920", "training windows; 0: all"},
     {"batch", "2", "4", "4", "windows of a step"},
     {"eval_samples", "8", "160", "160", "test windows; 0: all"},
     {"spike", "0.5", "0.5", "0.5", "nats of a mean loss above the least such mean before it"},
     {"spike_steps", "1", "8", "8", "steps of such a mean"},
     {"points", "3", "12", "12", "means of the loss that the figure shows"},
     {"seeds", "1", "1", "3", "seeds that recipes are paired by"}},
    run_training_recipes};

}  // namespace numemu::experiments
