// numemu train: a reference network from scratch to a checkpoint, the same bytes for the same
// options anywhere.
#include "emu/net/train/train.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "emu/net/model/safetensors.hpp"
#include "emu/net/nets.hpp"
#include "emu/stats/interval.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/error.hpp"
#include "formats/version.hpp"
#include "policies/recipe/canonical_json.hpp"
#include "policies/recipe/json_reader.hpp"
#include "policies/recipe/recipe_numerics.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string net = "lenet", data, out = "out/train", recipe, store = "f32";
  net::TrainOptions train;
  std::optional<double> learning_rate, weight_decay;
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
      {"training", fmt::format("{} {} lr {} momentum {} weight decay {} epochs {} batch {} seed {}",
                               t.optimizer, t.schedule, t.learning_rate, t.momentum, t.weight_decay,
                               t.epochs, t.batch, t.seed)}};
  return checkpoint;
}

int run(const Options& options) {
  const net::Dataset dataset = net::load_dataset(options.data, cache_folder());
  net::Graph graph = net::build_net(options.net, dataset.input_shape(), dataset.classes());
  net::initialize(graph, options.train.seed);
  net::Numerics float32;
  std::unique_ptr<policies::RecipeNumerics> quantized;
  if (!options.recipe.empty()) {
    quantized = std::make_unique<policies::RecipeNumerics>(
        policies::Recipe::parse_text(policies::read_text(options.recipe), options.recipe), graph,
        options.recipe);
  }
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
  hooks.on_epoch = [&](const net::EpochMetrics& epoch) {
    metrics += epoch_json(epoch).dump() + "\n";
    if (!options.quiet) {
      fmt::print(
          stderr,
          "\repoch {:3}  loss {:.4f}  train {:.2f} %  validation loss {:.4f}  {:.2f} %\033[K\n",
          epoch.epoch, epoch.train_loss, 100 * epoch.train_top1, epoch.validation_loss,
          100 * epoch.validation_top1);
    }
  };
  net::train(graph, dataset, options.train, numerics, hooks);

  const std::string path =
      fmt::format("{}/{}-{}.safetensors", options.out, options.net, dataset.name());
  net::write_safetensors(path, described(graph, dataset, options), storage(options.store));
  experiments::write_atomically(options.out + "/metrics.jsonl", metrics);
  // The test split is read here for the first time, with the weights as stored.
  net::load_parameters(graph, net::read_safetensors(path), path);
  const net::Evaluation test = net::evaluate(graph, dataset, net::Split::test, 0, float32);
  const stats::Interval interval = stats::wilson(test.correct, test.n);
  const double top1 = static_cast<double>(test.correct) / static_cast<double>(test.n);
  if (options.json) {
    fmt::print("{}\n", Json({{"checkpoint", path},
                             {"metrics",
                              {{"top1", top1},
                               {"n", test.n},
                               {"ci95", {interval.low, interval.high}},
                               {"loss", test.loss}}}})
                           .dump(2));
  } else {
    fmt::print(
        "test {:.2f} % of {} images, 95 % interval [{:.2f}, {:.2f}], loss {:.4f}, float32 on "
        "f32.sequential\n{}\n",
        100 * top1, test.n, 100 * interval.low, 100 * interval.high, test.loss, path);
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
  command->add_option("--optimizer", train.optimizer, "sgd or adam")
      ->capture_default_str()
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
  command->add_option("--seed", train.seed, "Seed of weights and order")->capture_default_str();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--quiet", options->quiet, "No progress");
  add_threads(*command);
  command->callback([&action, options] {
    action = [options] {
      net::use_recommended_rates(options->train);
      if (options->learning_rate) options->train.learning_rate = *options->learning_rate;
      if (options->weight_decay) options->train.weight_decay = *options->weight_decay;
      return run(*options);
    };
  });
}

}  // namespace numemu::cli
