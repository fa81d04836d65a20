#include "experiments/fractrain/gated_net.hpp"

#include <fmt/format.h>

#include "emu/net/build/builder.hpp"
#include "experiments/fractrain/methods.hpp"

namespace numemu::experiments::fractrain {
namespace {

constexpr std::int64_t kHidden = 128, kGate = 16;

}  // namespace

std::vector<Precision> gate_choices() { return {{4, 3, 6}, {4, 4, 6}, {4, 4, 8}, {4, 6, 8}}; }

GatedNet gated_net(const net::Shape& image, std::int64_t classes,
                   const std::vector<Precision>& choices, double beta) {
  std::vector<double> costs;
  for (const Precision& bits : choices) costs.push_back(100 * published_cost(bits));
  net::Builder builder("gated", image, classes);
  builder.flatten("flatten").linear("fc1", kHidden).relu("relu1");
  GatedNet net;
  for (int block = 1; block <= 2; ++block) {
    const int x = builder.value();
    const std::string gate = fmt::format("gate{}", block);
    builder.linear(gate + ".in", kGate).relu(gate + ".relu");
    const int logits =
        builder.linear(gate + ".out", static_cast<std::int64_t>(choices.size())).value();
    auto op = std::make_unique<GatedDense>(kHidden, kHidden, costs, beta);
    net.blocks.push_back(op.get());
    builder.node(fmt::format("block{}", block), std::move(op), {x, logits});
    builder.relu(fmt::format("relu{}", block + 1));
  }
  builder.classifier("fc2");
  net.graph = builder.take();
  return net;
}

Json gated_recipe(const std::vector<Precision>& choices, const Precision& rest) {
  Json recipe = {{"roles", roles_of(rest)}, {"layers", Json::array()}};
  for (std::size_t k = 0; k < choices.size(); ++k)
    recipe["layers"].push_back(
        {{"match", fmt::format("block?.{}", k)}, {"roles", roles_of(choices[k])}});
  return recipe;
}

}  // namespace numemu::experiments::fractrain
