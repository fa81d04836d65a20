// A recipe as numerics: products, stored tensors, updates, exchange.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/worker_means.hpp"
#include "formats/error.hpp"
#include "policies/recipe/random_identity.hpp"
#include "policies/recipe/recipe_product.hpp"
#include "policies/recipe/role_numerics.hpp"
#include "policies/recipe/stored_tensor.hpp"

namespace numemu::policies {
namespace {

/// An infinite or NaN element and its place.
struct Special {
  std::size_t at;
  float value;
};

/// Those of a tensor, which becomes zero there.
std::vector<Special> take_specials(net::Tensor& x) {
  std::vector<Special> specials;
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    if (std::isfinite(x.data[i])) continue;
    specials.push_back({i, x.data[i]});
    x.data[i] = 0;
  }
  return specials;
}

}  // namespace

void RoleNumerics::product(const net::Step& step, const net::Product& product) {
  RecipeLayer& found = layer(product.layer);
  ProductRun run{.seed = recipe_.seed(),
                 .phase = step.phase,
                 .frozen = found.frozen,
                 .first_sample = step.first_sample(),
                 .heard = &heard_};
  if (step.phase == net::Phase::training) {
    run.step = step.index;
    run.repetition = product.repetition_in(step);
  }
  run_product(found, product, run);
}

net::SharedTensor RoleNumerics::table(const net::Step& step, std::string_view name,
                                      const net::Tensor& parameter) {
  RecipeLayer* const node = node_of(name);
  // Scales of quantizers are no tables: they have no rows.
  if (node == nullptr || !node->embedding || parameter.shape.size() < 2) return nullptr;
  const auto quantized = [&] {
    auto values = std::make_shared<net::Tensor>(parameter);
    RandomPiece random;
    if (node->embedding->stochastic())
      random.source = stored_random(recipe_.seed(), name, "embedding", step, "fprop");
    fake_quantize(*node->embedding, values->shape, values->data.data(), 1, random);
    return values;
  };
  if (!frozen_ || step.phase == net::Phase::training) return quantized();
  const std::lock_guard lock(node->weight_mutex);
  if (node->frozen_table == nullptr) node->frozen_table = quantized();
  return node->frozen_table;
}

RecipeLayer* RoleNumerics::node_of(std::string_view name) const {
  if (!stores_) return nullptr;
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  // "conv1.weight" belongs to the node "conv1".
  const auto owner = nodes_.find(name.substr(0, name.rfind('.')));
  return owner != nodes_.end() ? owner->second.get() : nullptr;
}

void RoleNumerics::store(const net::Step& step, const RoleQuantizer& quantizer,
                         const net::Shape& shape, float* x, std::int64_t samples,
                         std::string_view layer_name, std::string_view role,
                         std::string_view use) const {
  RandomPiece random;
  if (quantizer.stochastic()) {
    const bool inference = step.phase == net::Phase::inference;
    random.source = stored_random(recipe_.seed(), layer_name, role, step, use);
    if (inference && !shape.empty() && shape[0] > 0)
      random.first = step.first_sample() * (net::element_count(shape) / shape[0]);
  }
  fake_quantize(quantizer, shape, x, samples, random);
}

void RoleNumerics::vector_result(const net::Step& step, std::string_view name, std::string_view,
                                 net::Tensor& x) {
  const RecipeLayer* const node = node_of(name);
  if (node == nullptr || !node->vector) return;
  const bool apart = frozen_ && step.phase == net::Phase::inference && !x.shape.empty();
  // The -infinity of a mask is not a number to round: it would saturate, or make its block NaN.
  const std::vector<Special> specials = take_specials(x);
  store(step, *node->vector, x.shape, x.data.data(), apart ? x.dim(0) : 1, name, "vector", "fprop");
  for (const Special& special : specials) x.data[special.at] = special.value;
}

net::Saved RoleNumerics::save(const net::Step& step, const net::Kept& kept,
                              const net::SharedTensor& tensor) {
  const RecipeLayer* const node = node_of(kept.layer);
  const bool linear = kept.use == net::Use::linear, sign = kept.use == net::Use::sign;
  if (node == nullptr || !node->saved || !(linear || sign)) return {tensor};
  if (sign) return {.tensor = nullptr, .shape = tensor->shape, .packed = pack_signs(*tensor)};
  RandomPiece random;
  if (node->saved->stochastic())
    random.source = stored_random(recipe_.seed(), kept.layer, "saved", step, "save");
  FlagCounts flags;
  return {.tensor = nullptr,
          .shape = tensor->shape,
          .packed = pack(*node->saved, *tensor, random, flags)};
}

net::SharedTensor RoleNumerics::restore(const net::Step&, const net::Kept& kept, net::Saved saved) {
  if (saved.tensor != nullptr) return saved.tensor;
  return std::make_shared<const net::Tensor>(
      kept.use == net::Use::sign
          ? restore_signs(saved.shape, saved.packed)
          : restore_packed(*node_of(kept.layer)->saved, saved.shape, saved.packed));
}

void RoleNumerics::optimizer_state(const net::Step& step, std::string_view parameter,
                                   std::string_view name, net::Tensor& state) {
  const RecipeLayer* const node = node_of(parameter);
  const RoleQuantizer* const quantizer = node == nullptr ? nullptr : node->state_quantizer(name);
  if (quantizer == nullptr) return;
  store(step, *quantizer, state.shape, state.data.data(), 1, parameter, "state", name);
}

std::vector<net::Tensor> RoleNumerics::exchange(const net::Step& step,
                                                std::vector<net::WorkerGradient> gradients) {
  // A worker adds up its micro-batches before it sends.
  gradients = net::worker_means(std::move(gradients));
  for (std::size_t i = 0; stores_ && i < gradients.size(); ++i) {
    net::WorkerGradient& given = gradients[i];
    if (given.parameters.size() != parameters_.size()) {
      throw Error(fmt::format("exchange: worker {} sent {} gradients, the graph has {} parameters",
                              given.worker, given.parameters.size(), parameters_.size()));
    }
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const RecipeLayer* const node = node_of(parameters_[p]);
      net::Tensor& x = given.parameters[p];
      if (node == nullptr || !node->exchange || x.empty()) continue;
      store(step, *node->exchange, x.shape, x.data.data(), 1, parameters_[p], "exchange",
            fmt::format("worker{}", given.worker));
    }
  }
  return net::Numerics::exchange(step, std::move(gradients));
}

}  // namespace numemu::policies
