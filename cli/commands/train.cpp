// numemu train: a reference network from scratch to a checkpoint, the same bytes for the same
// options anywhere.
#include "emu/net/train/train.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/version.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string net = "lenet", data, out = "out/train", recipe, store = "f32";
  policies::Recipe numerics;  ///< float32 without --recipe
  net::TrainOptions train;
  std::optional<std::string> optimizer;
  std::optional<double> learning_rate, weight_decay;
  std::int64_t seed = 0;
  bool quiet = false, json = false;
};

net::StorageType storage(const std::string& name) {
  return name == "f16"    ? net::StorageType::f16
         : name == "bf16" ? net::StorageType::bf16
                          : net::StorageType::f32;
}

Json epoch_json(const net::EpochMetrics& epoch) {
  const auto digits = [](double value) { return policies::significant(value, 6); };
  return {{"epoch", epoch.epoch},
          {"train_loss", digits(epoch.train_loss)},
          {"train_top1", digits(epoch.train_top1)},
          {"validation_loss", digits(epoch.validation_loss)},
          {"validation_top1", digits(epoch.validation_top1)}};
}

/// What made the weights, sorted by key; nothing that differs between machines.
net::Checkpoint described(const net::Graph& graph, const net::Dataset& dataset,
                          const Options& options) {
  net::Checkpoint checkpoint = net::parameters_of(graph);
  const net::TrainOptions& t = options.train;
  checkpoint.metadata = {
      {"data", dataset.name()},
      {"net", options.net},
      {"numerics", kNumericsVersion},
      {"training", fmt::format("{} {} lr {} {}weight decay {} epochs {} batch {} seed {}",
                               t.optimizer, t.schedule, t.learning_rate,
                               t.optimizer == "sgd" ? fmt::format("momentum {} ", t.momentum) : "",
                               t.weight_decay, t.epochs, t.batch, t.seed)}};
  if (!options.recipe.empty()) {
    checkpoint.metadata.insert(checkpoint.metadata.begin() + 3,
                               {"recipe", policies::canonical_json(options.numerics.json())});
  }
  return checkpoint;
}

/// Reads the recipe and settles what it, the optimizer and the command line say of training.
void settle(Options& options) {
  if (!options.recipe.empty()) {
    options.numerics = policies::Recipe::parse_text(read_text(options.recipe), options.recipe);
    const std::string named = options.numerics.json()["update"]["optimizer"];
    if (options.optimizer && *options.optimizer != named) {
      throw Error(fmt::format("{}: update.optimizer: '{}' contradicts --optimizer {}",
                              options.recipe, named, *options.optimizer));
    }
    options.train.optimizer = named;
  }
  if (options.optimizer) options.train.optimizer = *options.optimizer;
  net::use_recommended_rates(options.train);
  if (options.learning_rate) options.train.learning_rate = *options.learning_rate;
  if (options.weight_decay) options.train.weight_decay = *options.weight_decay;
  options.train.seed = static_cast<std::uint64_t>(options.seed);
}

/// The test split is read here for the first time, with the weights as stored and the recipe as
/// inference uses it.
net::Evaluation test(net::Graph& graph, const net::Dataset& dataset,
                     const policies::Recipe& recipe) {
  std::vector<std::uint8_t> labels;
  policies::RecipeNumerics numerics(recipe, graph);
  numerics.freeze(graph,
                  policies::float_reference(
                      graph, dataset.calibration_batch(0, net::Dataset::kCalibration, labels)));
  return net::evaluate(graph, dataset, net::Split::test, 0, numerics);
}

int run(const Options& options) {
  const net::Dataset dataset = net::load_dataset(options.data, cache_folder());
  net::Graph graph = net::build_net(options.net, dataset.input_shape(), dataset.classes());
  net::initialize(graph, options.train.seed);
  net::Numerics float32;
  std::unique_ptr<policies::RecipeNumerics> quantized;
  if (!options.recipe.empty()) {
    quantized = std::make_unique<policies::RecipeNumerics>(options.numerics, graph, options.recipe);
  }
  if (quantized) quantized->require_trainable(options.recipe);
  net::Numerics& numerics = quantized ? *quantized : float32;

  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) throw Error(fmt::format("{}: cannot be created ({})", options.out, error.message()));
  const std::int64_t steps =
      options.train.epochs *
      ((dataset.train_count() + options.train.batch - 1) / options.train.batch);
  Progress progress("train", steps, "steps", options.quiet);
  std::string metrics;
  net::TrainHooks hooks;
  hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
    progress.show(step, fmt::format("loss {:.4f}", loss));
  };
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) {
    if (!std::isfinite(epoch.train_loss)) {
      throw Error(
          fmt::format("training diverged: the loss of epoch {} is not finite; use a smaller --lr",
                      epoch.epoch));
    }
    metrics += epoch_json(epoch).dump() + "\n";
    if (!options.quiet) {
      fmt::print(stderr,
                 "{}epoch {:3}  loss {:.4f}  train {:.2f} %  validation loss {:.4f}  {:.2f} %{}\n",
                 terminal ? "\r" : "", epoch.epoch, epoch.train_loss, 100 * epoch.train_top1,
                 epoch.validation_loss, 100 * epoch.validation_top1, terminal ? "\033[K" : "");
    }
  };
  net::train(graph, dataset, options.train, numerics, hooks);

  const std::string path =
      fmt::format("{}/{}-{}.safetensors", options.out, options.net, dataset.name());
  net::write_safetensors(path, described(graph, dataset, options), storage(options.store));
  write_atomically(options.out + "/metrics.jsonl", {metrics});
  net::load_parameters(graph, net::read_safetensors(path), path);
  const net::Evaluation tested = test(graph, dataset, options.numerics);
  const stats::Interval interval = stats::wilson(tested.correct, tested.n);
  const double top1 = static_cast<double>(tested.correct) / static_cast<double>(tested.n);
  if (options.json) {
    fmt::print("{}\n", Json({{"checkpoint", path},
                             {"recipe", options.numerics.json()},
                             {"metrics",
                              {{"top1", top1},
                               {"n", tested.n},
                               {"ci95", {interval.low, interval.high}},
                               {"loss", tested.loss}}}})
                           .dump(2));
  } else {
    fmt::print("test {:.2f} % of {} images, 95 % interval [{:.2f}, {:.2f}], loss {:.4f}, {}\n{}\n",
               100 * top1, tested.n, 100 * interval.low, 100 * interval.high, tested.loss,
               options.recipe.empty() ? "float32 on neutral.f32.sequential"
                                      : "numerics of " + options.recipe,
               path);
  }
  return kFine;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Train a reference network from scratch");
  auto options = std::make_shared<Options>();
  net::TrainOptions& train = options->train;
  command->add_option("--net", options->net, "Reference network")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--data", options->data, "glyphs, mnist:DIR or cifar10:DIR")
      ->required()
      ->type_name("SET");
  command->add_option("--out", options->out, "Folder for the checkpoint and metrics.jsonl")
      ->capture_default_str()
      ->type_name("DIR");
  command->add_option("--recipe", options->recipe, "The numerics of training (default: float32)")
      ->type_name("R.json");
  command->add_option("--store", options->store, "Type of the stored weights")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command
      ->add_option("--optimizer", options->optimizer, "sgd or adam (default: the recipe's, adam)")
      ->type_name("NAME");
  command->add_option("--schedule", train.schedule, "cosine or step")
      ->capture_default_str()
      ->type_name("NAME");
  command->add_option("--lr", options->learning_rate, "Learning rate (default: the optimizer's)")
      ->check(CLI::PositiveNumber);
  command->add_option("--momentum", train.momentum, "Momentum of sgd")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--weight-decay", options->weight_decay,
                   "Weight decay (default: the optimizer's)")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--epochs", train.epochs, "Passes over the training images")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_option("--batch", train.batch, "Images per step")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command
      ->add_option("--seed", options->seed,
                   "Seed of weights and order (the recipe's is for rounding)")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 53));
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--quiet", options->quiet, "No progress");
  add_threads(*command);
  command->callback([&action, options] {
    action = [options] {
      settle(*options);
      return run(*options);
    };
  });
}

}  // namespace numemu::cli
