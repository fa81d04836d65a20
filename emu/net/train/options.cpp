// The ranges of the training options, and their text.
#include "emu/net/train/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "emu/net/train/objective.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/schedule.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kMostEpochs = 1'000'000, kMostWarmup = 1'000'000'000, kMostCopies = 1024;

void require(bool condition, const char* key, const char* expected) {
  if (!condition) throw Error(std::string("training option ") + key + ": expected " + expected);
}

/// Throws Error where beta1, beta2 or epsilon is set but no optimizer of the run reads it.
void require_read(const TrainOptions& o) {
  bool betas = false, epsilon = false;
  std::vector<std::string> names;
  const auto add = [&](const std::string& text) {
    const OptimizerName& known = find_optimizer(text);
    const std::string name(known.name);
    if (std::ranges::find(names, name) != names.end()) return;
    betas = betas || known.betas;
    epsilon = epsilon || known.epsilon;
    names.push_back(name);
  };
  for (const std::string& objective : o.objectives) {
    const auto own = o.objective_optimizers.find(objective);
    add(own == o.objective_optimizers.end() ? o.optimizer : own->second);
  }
  const TrainOptions usual;
  const auto refuse = [&](const char* key, bool read, double value, double expected) {
    if (read || value == expected) return;
    throw Error(fmt::format("training option {}: expected {}, the default, which {} does not read",
                            key, expected, joined(names, ", ")));
  };
  refuse("beta1", betas, o.beta1, usual.beta1);
  refuse("beta2", betas, o.beta2, usual.beta2);
  refuse("epsilon", epsilon, o.epsilon, usual.epsilon);
}

bool at_least_zero(double x) { return std::isfinite(x) && x >= 0; }

}  // namespace

void check(const TrainOptions& o) {
  find_schedule(o.schedule);
  require_optimizer(o.optimizer);
  require(!o.objectives.empty(), "objectives", "at least one");
  std::set<std::string_view> names;
  for (const std::string& text : o.objectives)
    require(names.insert(find_objective(text).name).second, "objectives", "each name once");
  for (const auto& [objective, optimizer] : o.objective_optimizers) {
    require_optimizer(optimizer);
    const bool known =
        std::find(o.objectives.begin(), o.objectives.end(), objective) != o.objectives.end();
    require(known, "objective_optimizers", "names among the objectives");
  }
  require(at_least_zero(o.learning_rate), "learning_rate", "a finite number >= 0");
  require(o.warmup >= 0 && o.warmup <= kMostWarmup, "warmup", "a number in 0 to 1000000000");
  require(o.momentum >= 0 && o.momentum < 1, "momentum", "a number in [0, 1)");
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", "a number in [0, 1)");
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", "a number in [0, 1)");
  require(std::isfinite(o.epsilon) && o.epsilon > 0, "epsilon", "a finite number > 0");
  require_read(o);
  require(at_least_zero(o.weight_decay), "weight_decay", "a finite number >= 0");
  require(at_least_zero(o.clip), "clip", "a finite number >= 0");
  require(o.epochs >= 0 && o.epochs <= kMostEpochs, "epochs", "a number in 0 to 1000000");
  require(o.patience >= 0, "patience", "a number >= 0");
  require(o.batch >= 1, "batch", "at least 1");
  require(o.workers >= 1 && o.workers <= kMostWorkers, "workers", "a number in 1 to 65536");
  require(o.micro_batches >= 1 && o.micro_batches <= kMostWorkers, "micro_batches",
          "a number in 1 to 65536");
  require(o.local_steps >= 0 && o.local_steps <= kMostWarmup, "local_steps",
          "a number in 0 to 1000000000");
  require(o.local_steps == 0 || o.objectives.size() == 1, "local_steps",
          "0 with several objectives");
  require(o.copies >= 1 && o.copies <= kMostCopies, "copies", "a number in 1 to 1024");
  require(o.copies == 1 || o.augments(), "copies",
          "1 without augmentation, which makes copies differ");
  check_image_sizes(o);
  if (o.workers * o.micro_batches > o.batch) {
    throw Error(fmt::format(
        "training options workers, micro_batches: expected at most batch ({}) parts, not {} x {}",
        o.batch, o.workers, o.micro_batches));
  }
  const std::int64_t parts = o.workers * o.micro_batches, less = o.batch / parts * parts;
  if (less != o.batch) {
    throw Error(
        fmt::format("training options batch: expected a multiple of {} workers x {} micro-batches, "
                    "such as {} or {}, not {}",
                    o.workers, o.micro_batches, less, less + parts, o.batch));
  }
}

std::vector<std::pair<std::string, std::string>> described(const TrainOptions& o) {
  // fmt prints the shortest text that reads back as the same double.
  std::vector<std::pair<std::string, std::string>> all = {
      {"optimizer", canonical_optimizer(o.optimizer)},
      {"schedule", o.schedule},
      {"learning_rate", fmt::format("{}", o.learning_rate)},
      {"warmup", fmt::format("{}", o.warmup)},
      {"momentum", fmt::format("{}", o.momentum)},
      {"nesterov", o.nesterov ? "true" : "false"},
      {"beta1", fmt::format("{}", o.beta1)},
      {"beta2", fmt::format("{}", o.beta2)},
      {"epsilon", fmt::format("{}", o.epsilon)},
      {"weight_decay", fmt::format("{}", o.weight_decay)},
      {"clip", fmt::format("{}", o.clip)},
      {"epochs", fmt::format("{}", o.epochs)},
      {"patience", fmt::format("{}", o.patience)},
      {"batch", fmt::format("{}", o.batch)},
      {"augment",
       fmt::format("shift {} flip {} crop {}", o.augment.shift, o.augment.flip, o.augment.crop)},
      {"seed", fmt::format("{}", o.seed)}};
  if (o.workers != 1) all.emplace_back("workers", fmt::format("{}", o.workers));
  if (o.micro_batches != 1) all.emplace_back("micro_batches", fmt::format("{}", o.micro_batches));
  if (o.local_steps != 0) all.emplace_back("local_steps", fmt::format("{}", o.local_steps));
  if (o.copies != 1) all.emplace_back("copies", fmt::format("{}", o.copies));
  if (!o.sizes.shares.empty()) all.emplace_back("image_sizes", to_string(o.sizes));
  // Runs from before there was a choice keep their identity.
  if (o.objectives != TrainOptions().objectives) {
    std::vector<std::string> objectives;
    for (const std::string& text : o.objectives) objectives.push_back(canonical_objective(text));
    all.emplace_back("objectives", joined(objectives, " "));
  }
  for (const auto& [objective, optimizer] : o.objective_optimizers) {
    all.emplace_back("optimizer of " + canonical_objective(objective),
                     canonical_optimizer(optimizer));
  }
  return all;
}

namespace {

struct Recommended {
  std::string_view net, optimizer;
  double learning_rate, weight_decay;
  std::int64_t warmup;
  double clip;
};

// The first row of a network is its own optimizer. Residual networks: the rates of He et al. 2016
// (section 4.2). Depthwise filters have few weights each, which the same decay shrinks too far
// (Howard et al. 2017, section 3.1). Plain deep networks start badly with sgd: at 0.05 vgg-small
// learnt nothing in four epochs of 40 steps. Transformers and recurrent networks need clipped
// gradients and a warm-up (Vaswani et al. 2017, Pascanu et al. 2013).
constexpr Recommended kRows[] = {
    {"resnet20", "sgd", 0.1, 1e-4, 0, 0},
    {"resnet32", "sgd", 0.1, 1e-4, 0, 0},
    {"resnet56", "sgd", 0.1, 1e-4, 400, 0},
    {"vgg-small", "adam", 0.002, 0.01, 0, 0},
    {"vgg-small", "sgd", 0.01, 5e-4, 0, 1},
    {"mobilenet-small", "sgd", 0.05, 4e-5, 0, 0},
    {"char-transformer", "adamw", 0.001, 0.1, 100, 1},
    {"char-transformer", "adam", 0.001, 0.1, 100, 1},
    {"char-transformer", "adam-l2", 0.001, 1e-4, 100, 1},
    {"char-transformer", "sgd", 0.1, 1e-4, 100, 1},
    {"lstm-char", "adamw", 0.002, 0.01, 100, 1},
    {"lstm-char", "adam", 0.002, 0.01, 100, 1},
    {"lstm-char", "sgd", 0.5, 1e-5, 100, 1},
    {"dlrm-small", "adamw", 0.001, 0.001, 0, 0},
    {"dlrm-small", "sgd", 0.1, 1e-6, 0, 0},
};

/// The row's network: those of any width have the rates of dlrm-small, those with a fixed
/// classifier the rates of the network with a trained one.
std::string_view row_name(std::string_view net) {
  if (net.starts_with("hadamard(") && net.ends_with(')')) net = net.substr(9, net.size() - 10);
  return net.starts_with("dlrm(") ? "dlrm-small" : net;
}

}  // namespace

std::string recommended_optimizer(std::string_view net) {
  for (const Recommended& row : kRows) {
    if (row.net == row_name(net)) return std::string(row.optimizer);
  }
  return TrainOptions{}.optimizer;
}

void use_recommended_rates(TrainOptions& options, std::string_view net) {
  const OptimizerName& any = find_optimizer(options.optimizer);
  Recommended rates{"", any.name, any.learning_rate, any.weight_decay, 0, 0};
  for (const Recommended& row : kRows) {
    if (row.net == row_name(net) && row.optimizer == any.name) rates = row;
  }
  options.learning_rate = rates.learning_rate;
  options.weight_decay = rates.weight_decay;
  options.warmup = rates.warmup;
  options.clip = rates.clip;
}

}  // namespace numemu::net
