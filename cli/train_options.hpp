// The settings of numemu train, from options, recipe and recommended rates.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.hpp"
#include "emu/net/data/view.hpp"
#include "emu/net/train/options.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::cli {

struct TrainCommand {
  std::string net = "lenet", data, out = "out/train", recipe, store = "f32";
  policies::Recipe numerics;  ///< float32 without --recipe
  net::TrainOptions train;    ///< complete after settle()
  net::DataView view;         ///< complete after settle()
  std::int64_t save_every = 0;
  bool fresh = false, profile = false, quiet = false, json = false;

  // Options that override the recipe's or the recommended values.
  std::optional<std::string> optimizer, augment;
  std::optional<double> learning_rate, weight_decay, clip;
  std::optional<std::int64_t> warmup;
  std::int64_t seed = 0;
};

void add_train_options(Command& command, TrainCommand&);

/// Reads the recipe and combines it with the defaults of network and optimizer and the options.
/// Throws Error where they contradict each other.
void settle(TrainCommand&);

/// The options in a line, those left at their usual value only where older checkpoints name them.
std::string training_text(const net::TrainOptions&);

}  // namespace numemu::cli
