// Batch augmentation: several augmented copies of each sample in a batch, what they do to the
// variance of its mean gradient, and how many updates they save (Hoffer et al., Augment your batch,
// CVPR 2020, arXiv 1901.09335).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "emu/net/data/dataset.hpp"
#include "experiments/batch_augmentation/gradients.hpp"
#include "experiments/batch_augmentation/training.hpp"
#include "experiments/engine/study.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace batch_augmentation {

TrainTrial Group::trial(const Settings& settings, const std::string& net,
                        const std::string& format) const {
  TrainTrial trial =
      training_of(settings, net, {.optimizer = trained_before() ? "sgd" : "", .prefix = prefix});
  trial.options.augment = augment;
  if (format != "float32")
    for (const std::string& role : roles) trial.recipe["roles"][role] = {{"format", format}};
  return trial;
}

namespace {

constexpr std::int64_t kMostCopies = 64;

/// Throws Error for what is wrong with the settings whatever the data are.
Group group_of(const Settings& settings, const std::string& prefix) {
  Group group{.prefix = prefix,
              .nets = {},
              .copies = settings.whole_numbers("copies"),
              .formats = settings.list("formats"),
              .roles = settings.list("roles"),
              .augment = {.shift = settings.integer(prefix + "shift"),
                          .flip = settings.integer(prefix + "flip") == 1,
                          .crop = settings.integer(prefix + "crop")}};
  if (settings.text(prefix + "nets") != "-") group.nets = settings.list(prefix + "nets");
  const std::vector<std::int64_t>& copies = group.copies;
  const bool ascending = std::ranges::adjacent_find(copies, std::greater_equal<>()) == copies.end();
  if (copies.size() < 2 || copies.front() != 1 || !ascending)
    throw usage_error("--set: copies: expected 1 and larger numbers, ascending, not " +
                      settings.text("copies"));
  if (group.formats.front() != "float32")
    throw usage_error("--set: formats: expected float32 first, not " + settings.text("formats"));
  if (group.augment.shift == 0 && !group.augment.flip && group.augment.crop == 0)
    throw usage_error(
        fmt::format("--set: {0}shift: expected a shift, {0}flip or {0}crop, which "
                    "make copies differ",
                    prefix));
  for (const std::string& net : group.nets) {
    for (const std::string& format : group.formats) {
      const TrainTrial trial = group.trial(settings, net, format);
      parsed_recipe(trial);
      for (const std::int64_t m : copies) {
        if (trial.options.epochs % m != 0)
          throw usage_error(
              fmt::format("--set: {}epochs: expected a multiple of all of copies = {}, not {}",
                          prefix, settings.text("copies"), trial.options.epochs));
      }
    }
  }
  return group;
}

/// Refuses settings that the data set does not serve.
void require_data(const Settings& settings, const Group& group, const net::Dataset& data) {
  if (data.kind() != net::DataKind::images)
    throw usage_error(fmt::format("--set: {}data: expected images, which can be augmented, not {}",
                                  group.prefix, data.name()));
  net::check(group.augment, data.input_shape()[0], data.input_shape()[1]);
  for (const std::string& net : group.nets) {
    const TrainTrial trial = group.trial(settings, net, "float32");
    restricted(data, trial.train_samples, false);
    if (trial.eval_samples > data.test_count())
      throw usage_error(fmt::format("--set: {}eval_samples: expected at most {}, not {}",
                                    group.prefix, data.test_count(), trial.eval_samples));
    require_single_gradients(trial, data);
    const std::int64_t first = first_sample(group, trial, data),
                       needed = gradient_plan(settings).samples();
    if (first + needed > data.train_count())
      throw usage_error(fmt::format(
          "--set: gradient_batches: {} training samples are left for gradients of {}, not {}",
          std::max<std::int64_t>(0, data.train_count() - first), net, needed));
  }
}

Conclusion run_batch_augmentation(const ExperimentRun& run) {
  std::vector<Group> groups = {group_of(run.settings, ""), group_of(run.settings, "tuned_")};
  std::erase_if(groups, [](const Group& group) { return group.nets.empty(); });
  if (groups.empty()) throw usage_error("--set: nets: expected networks here or in tuned_nets");
  gradient_plan(run.settings);
  test_count(run.settings);
  seeds_of(run);
  std::vector<net::Dataset> sets;
  for (const Group& group : groups) {
    const std::string& name = run.settings.text(group.prefix + "data");
    run.say("loading " + name);
    sets.push_back(net::load_dataset(name, run.folders.cache));
    require_data(run.settings, group, sets.back());
  }
  Conclusion conclusion;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& net : groups[g].nets) {
      const std::vector<double> ratios = add_gradients(run, groups[g], net, sets[g], conclusion);
      for (const std::string& format : groups[g].formats)
        add_training(run, groups[g], net, format, ratios, sets[g], conclusion);
    }
  }
  return conclusion;
}

}  // namespace
}  // namespace batch_augmentation

extern const Experiment experiment_batch_augmentation;
const Experiment experiment_batch_augmentation = {
    "batch-augmentation",
    "what several augmented copies of each sample do to the variance of a batch's gradient, how "
    "many updates they save, and what few bits do to both",
    "Hoffer et al. (CVPR 2020, arXiv 1901.09335) claim that a batch with several copies of each "
    "sample, each augmented on its own, generalises better and takes fewer updates to the same "
    "accuracy.",
    {{"variance",
      "The mean gradient of N samples with M copies has the variance sigma^2 / N (rho + (1 - rho) "
      "/ M) about its mean (derived here)."},
     {"square", "Its mean square is |mu|^2 plus that variance (derived here)."},
     {"formats",
      "Under few bits the variance stays within 10 % of what float32 gradients predict (a "
      "contrast)."},
     {"rho", "Rounding errors differ by copy, so that few bits lower rho (derived here)."},
     {"updates", "Copies save updates to the accuracy that one copy ends with (published).",
      "seeds"},
     {"noise", "The updates fall by no more than the variance of the gradient does (a contrast).",
      "seeds"},
     {"accuracy", "At as many updates copies gain accuracy (published).", "seeds"},
     {"rows",
      "At as many rows copies lose accuracy, since the variance of M of them is 1 + (M - 1) rho "
      "times that of as many samples (derived here).",
      "seeds"},
     {"few bits", "What is published of accuracy holds in few bits, too (a contrast).", "seeds"}},
    {{"nets", "lenet", "lenet,mlp", "lenet,mlp", "networks trained from the start; -: none",
      takes_networks_or_none()},
     {"data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
     {"copies", "1,2,4", "1,2,4", "1,2,4", "copies of each sample, 1 and more",
      wholes(1, batch_augmentation::kMostCopies)},
     {"formats", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4", "float32,mxfp8_e4m3,mxfp4",
      "of the roles, float32 first", list_of()},
     {"roles", "weight,activation", "weight,activation", "weight,activation",
      "tensors in the formats", list_of()},
     {"shift", "3", "3", "3", "largest shift of a copy, in pixels", whole(0, 16)},
     {"flip", "0", "0", "0", "1: copies are mirrored with probability 1/2", whole(0, 1)},
     {"crop", "2", "2", "2", "pixels by which a copy's window is smaller at most", whole(0, 16)},
     {"gradient_samples", "128", "1024", "1024", "samples whose gradients are read one by one",
      whole(2 * 20, 1'000'000)},
     {"gradient_batch", "8", "8", "8", "samples of a batch whose mean gradient is measured",
      whole(1, 10'000)},
     {"gradient_batches", "60", "400", "400", "of them", whole(2 * 20, 1'000'000)},
     {"epochs", "4", "8", "8", "epochs at as many updates", whole(1, 10'000)},
     {"batch", "16", "16", "16", "samples of an update", whole(1, 100'000)},
     {"train_samples", "128", "1024", "1024", "first training images; the others give gradients",
      whole(0, 1'000'000'000)},
     {"eval_samples", "200", "1000", "1000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"tests", "8", "16", "16", "tests on the way", whole(1, 1000)},
     {"tuned_nets", "-", "-", "-", "trained networks to train on, .onnx files; -: none",
      takes_networks_or_none()},
     {"tuned_data", "glyphs", "glyphs", "glyphs", "data set of images", takes_data_set()},
     {"tuned_shift", "4", "4", "4", "as shift", whole(0, 16)},
     {"tuned_flip", "1", "1", "1", "as flip", whole(0, 1)},
     {"tuned_crop", "0", "0", "0", "as crop", whole(0, 16)},
     {"tuned_epochs", "4", "4", "4", "as epochs", whole(1, 10'000)},
     {"tuned_batch", "32", "32", "32", "as batch", whole(1, 100'000)},
     {"tuned_lr", "0.01", "0.01", "0.01", "rate of their SGD", real(1e-9, 1e3)},
     {"tuned_warmup", "0", "0", "0", "steps of the rising learning rate", whole(0, 1'000'000'000)},
     {"tuned_train_samples", "128", "1000", "1000", "first training images; 0: all",
      whole(0, 1'000'000'000)},
     {"tuned_eval_samples", "200", "1000", "4000", "test images; 0: all", whole(0, 1'000'000'000)},
     {"seeds", "1", "5", "10", "seeds that numbers of copies are paired by", whole(1, 1000)}},
    batch_augmentation::run_batch_augmentation};

}  // namespace numemu::experiments
