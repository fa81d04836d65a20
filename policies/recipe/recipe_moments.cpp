// A recipe as numerics: products, stored tensors, updates, exchange.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/quantize.hpp"
#include "policies/recipe/recipe_numerics.hpp"
#include "policies/recipe/recipe_product.hpp"
#include "policies/recipe/stored_tensor.hpp"
#include "policies/thread_step.hpp"

namespace numemu::policies {
namespace {

RandomSource stored_random(std::uint64_t seed, std::string_view layer, std::string_view role,
                           std::int64_t step, std::string_view use) {
  RandomSource source;
  source.seed = seed;
  source.tensor = tensor_word(fmt::format("{}/{}/{}/{}", layer, role, step, use));
  return source;
}

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

/// Rounds to the master format, which is used without a scale and saturates.
void round_to(const Format& master, const Rounding& rounding, const RandomSource& random,
              net::Tensor& x) {
  RolePolicy policy;
  policy.format = &master;
  policy.rounding = rounding;
  policy.scale = "none";
  fake_quantize(RoleQuantizer(policy), x.shape, x.data.data(), 1, {random, 0});
}

}  // namespace

void RecipeNumerics::product(const net::Product& product) {
  RecipeLayer& found = layer(product.layer);
  const ThreadStep& here = thread_step();
  ProductRun run{
      .seed = recipe_.seed(), .phase = here.phase, .frozen = found.frozen, .heard = &heard_};
  if (here.phase == net::Phase::training) {
    run.step = training_step_;
    run.repetition = found.products_in_step[static_cast<std::size_t>(product.kind)]++;
  } else {
    run.first_sample = here.first_sample;
  }
  run_product(found, product, run);
}

RecipeLayer* RecipeNumerics::node_of(std::string_view name) const {
  if (!stores_) return nullptr;
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  // "conv1.weight" belongs to the node "conv1".
  const auto owner = nodes_.find(name.substr(0, name.rfind('.')));
  return owner != nodes_.end() ? owner->second.get() : nullptr;
}

void RecipeNumerics::store(const RoleQuantizer& quantizer, const net::Shape& shape, float* x,
                           std::int64_t samples, std::string_view layer_name, std::string_view role,
                           std::string_view use) const {
  const ThreadStep& here = thread_step();
  RandomPiece random;
  if (quantizer.stochastic()) {
    const bool inference = here.phase == net::Phase::inference;
    random.source =
        stored_random(recipe_.seed(), layer_name, role, inference ? 0 : training_step_.load(), use);
    if (inference && !shape.empty() && shape[0] > 0)
      random.first = here.first_sample * (net::element_count(shape) / shape[0]);
  }
  fake_quantize(quantizer, shape, x, samples, random);
}

void RecipeNumerics::vector_result(std::string_view name, std::string_view, net::Tensor& x) {
  const RecipeLayer* const node = node_of(name);
  if (node == nullptr) return;
  round_vector(*node, name, x);
  if (node->zap) node->zap->skip(name, x);
}

void RecipeNumerics::round_vector(const RecipeLayer& node, std::string_view name,
                                  net::Tensor& x) const {
  if (!node.vector) return;
  const bool apart = frozen_ && thread_step().phase == net::Phase::inference && !x.shape.empty();
  // The -infinity of a mask is not a number to round: it would saturate, or make its block NaN.
  const std::vector<Special> specials = take_specials(x);
  store(*node.vector, x.shape, x.data.data(), apart ? x.dim(0) : 1, name, "vector", "fprop");
  for (const Special& special : specials) x.data[special.at] = special.value;
}

net::Saved RecipeNumerics::save(std::string_view name, net::Tensor tensor) {
  const RecipeLayer* const node = node_of(name);
  if (node == nullptr || !node->saved) return {std::move(tensor), {}};
  RandomPiece random;
  if (node->saved->stochastic())
    random.source = stored_random(recipe_.seed(), name, "saved", training_step_, "save");
  net::Saved saved;
  FlagCounts flags;
  saved.packed = pack(*node->saved, tensor, random, flags);
  saved.tensor.shape = std::move(tensor.shape);
  return saved;
}

net::Tensor RecipeNumerics::restore(std::string_view name, net::Saved saved) {
  const RecipeLayer* const node = node_of(name);
  if (node == nullptr || !node->saved || !saved.tensor.empty()) return std::move(saved.tensor);
  return restore_packed(*node->saved, saved.tensor.shape, saved.packed);
}

void RecipeNumerics::update(const net::Update& update) {
  net::Numerics::update(update);
  const UpdatePolicy& policy = recipe_.update();
  const auto masked = masked_parameters_.find(update.parameter);
  if (masked != masked_parameters_.end()) masked->second->weight_mask->settle(*update.value);
  if (policy.master == nullptr || policy.master->name == "float32") return;
  RandomSource random;
  if (policy.rounding.stochastic()) {
    random = stored_random(recipe_.seed(), update.parameter, "update", training_step_, "master");
  }
  round_to(*policy.master, policy.rounding, random, *update.value);
}

void RecipeNumerics::optimizer_state(std::string_view parameter, std::string_view name,
                                     net::Tensor& state) {
  const RecipeLayer* const node = node_of(parameter);
  if (node == nullptr || !node->state) return;
  store(*node->state, state.shape, state.data.data(), 1, parameter, "state", name);
}

std::vector<net::Tensor> RecipeNumerics::exchange(std::vector<std::vector<net::Tensor>> gradients) {
  for (std::size_t worker = 0; stores_ && worker < gradients.size(); ++worker) {
    if (gradients[worker].size() != parameters_.size()) {
      throw Error(fmt::format("exchange: worker {} sent {} gradients, the graph has {} parameters",
                              worker, gradients[worker].size(), parameters_.size()));
    }
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const RecipeLayer* const node = node_of(parameters_[p]);
      net::Tensor& x = gradients[worker][p];
      if (node == nullptr || !node->exchange || x.empty()) continue;
      store(*node->exchange, x.shape, x.data.data(), 1, parameters_[p], "exchange",
            fmt::format("worker{}", worker));
    }
  }
  return net::Numerics::exchange(std::move(gradients));
}

}  // namespace numemu::policies
