// Recommended training options: one row per network and optimizer; other pairs use the rates of the
// optimizer.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/options.hpp"

namespace numemu::net {
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
