#include "policies/numerics/recipe_numerics.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <set>

#include "emu/net/train/options.hpp"
#include "formats/error.hpp"
#include "policies/numerics/sets_scales.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/choices.hpp"

namespace numemu::policies {

void release_weights(net::Node& node, const RecipeNumerics& numerics) {
  std::set<int> held, read;
  for (const net::OpProduct& product : node.op->products()) {
    if (product.weight < 0) continue;
    (numerics.holds_weight(node.name + product.suffix) ? held : read).insert(product.weight);
  }
  bool any = false;
  for (const int weight : held) {
    net::Tensor& value = node.op->parameters()[static_cast<std::size_t>(weight)].value;
    if (read.contains(weight) || value.empty()) continue;
    value.release();
    any = true;
  }
  if (any) malloc_trim(0);  // weights lie between memory in use
}

PolicyStack::PolicyStack(const BoundRecipe& recipe, net::Numerics& bottom,
                         const std::function<bool(const PolicyKind&)>& takes)
    : bottom_(bottom) {
  const std::string& where = recipe.where();
  if (!recipe->stages().empty())
    throw Error(where + ": stages: expected the recipe of one stage (StagedNumerics has all)");
  const std::vector<PolicySlot>& slots = policy_slots();
  recipe->require_policy_matches(recipe.graph(), where);
  // By slot, the layers of every policy that some layer chose.
  std::vector<std::map<const PolicyKind*, Binding>> chosen(slots.size());
  for (const std::string& name : recipe.names()) {
    const auto choose = [&](std::size_t slot, const PolicyChoice& choice) {
      const bool typed = choice.kind->chosen_by != nullptr;
      const Binding empty{.recipe = recipe,
                          .where = typed ? where : fmt::format("{}: {}", where, slots[slot].key),
                          .layers = {}};
      Binding& binding = chosen[slot].try_emplace(choice.kind, empty).first->second;
      binding.layers.emplace(name, choice.options);
    };
    const std::vector<std::optional<PolicyChoice>>& policies = recipe.policies(name);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (policies[i]) choose(i, *policies[i]);
      for (const PolicyKind* kind : all_policies()) {
        if (kind->key == slots[i].key && kind->chosen_by &&
            kind->chosen_by(recipe.recipe(), recipe.layer(name)))
          choose(i, {.kind = kind, .options = nullptr});
      }
    }
  }
  for (std::size_t i = slots.size(); i-- > 0;) {
    // In the order of the table, not of addresses.
    for (const PolicyKind* kind : all_policies()) {
      const auto found = chosen[i].find(kind);
      if (found == chosen[i].end() || (takes && !takes(*kind))) continue;
      policies_.push_back(kind->bind(std::move(found->second), top()));
    }
  }
}

void PolicyStack::freeze(const net::Graph& graph, const Calibration& calibration) {
  for (auto policy = policies_.rbegin(); policy != policies_.rend(); ++policy)
    (*policy)->freeze(graph, calibration);
}

RoleNumerics::ReadInput PolicyStack::read_input() const {
  std::vector<const RewritesInputs*> rewriters;  // the outermost first
  for (auto policy = policies_.rbegin(); policy != policies_.rend(); ++policy) {
    if (const auto* rewriter = dynamic_cast<const RewritesInputs*>(policy->get()))
      rewriters.push_back(rewriter);
  }
  if (rewriters.empty()) return {};
  return [rewriters](std::string_view layer, std::int64_t first_sample, net::Tensor& x) {
    for (const RewritesInputs* rewriter : rewriters) rewriter->read_input(layer, first_sample, x);
  };
}

RecipeNumerics::RecipeNumerics(const BoundRecipe& recipe)
    : NumericsStack(recipe), Forwarding(stack_.top()) {
  for (const auto& policy : stack_.policies()) {
    if (auto* const setter = dynamic_cast<SetsScales*>(policy.get())) setter->give_roles(roles_);
    if (auto* const learner = dynamic_cast<LearnsScales*>(policy.get()))
      learner->give_scales_to([this](std::string_view layer, RolePart part, FixedScales scales) {
        roles_.use_scales(layer, part, std::move(scales));
      });
  }
}

RoundedResults RecipeNumerics::rounded_results() const {
  RoundedResults all;
  for (const auto& policy : stack_.policies()) {
    if (const auto* const setter = dynamic_cast<const SetsScales*>(policy.get()))
      all.merge(setter->rounded_results());
  }
  return all;
}

void RecipeNumerics::set_learning_rate(double rate) {
  for (const auto& policy : stack_.policies()) {
    if (auto* const learner = dynamic_cast<LearnsScales*>(policy.get()))
      learner->set_learning_rate(rate);
  }
}

FixedRanges RecipeNumerics::learned_ranges(bool best) const {
  FixedRanges all;
  for (const auto& policy : stack_.policies()) {
    const auto* const learner = dynamic_cast<const LearnsScales*>(policy.get());
    if (learner != nullptr) all.merge(learner->learned(best));
  }
  return all;
}

void RecipeNumerics::freeze(const net::Graph& graph, std::int64_t available,
                            const CalibrationBatch& batch, SeenTensors* shared) {
  const Calibration calibration{std::min(available, recipe_->calibration().samples), batch};
  stack_.freeze(graph, calibration);
  roles_.freeze(graph, calibration, stack_.read_input(), shared);
}

void RecipeNumerics::freeze_weights(const net::Graph& graph, const Calibration& calibration) {
  stack_.freeze(graph, calibration);
  roles_.forget_weights();
}

void RecipeNumerics::freeze(const net::Graph& graph, const FloatReference& reference) {
  freeze(graph, reference.samples(), [&](std::int64_t first, std::int64_t count) {
    std::vector<net::Tensor> batch;
    for (const net::Tensor& x : reference.batch) batch.push_back(samples_of(x, first, count));
    return batch;
  });
}

bool RecipeNumerics::holds_weight(std::string_view layer) const {
  const auto leaves = [](const auto& policy) {
    return dynamic_cast<const LeavesWeights*>(policy.get()) != nullptr;
  };
  return std::ranges::all_of(stack_.policies(), leaves) && roles_.holds_weight(layer);
}

void RecipeNumerics::require_trainable(const std::string& where) const {
  for (const auto& policy : stack_.policies()) policy->require_trainable(where);
  roles_.require_trainable(where);
}

void RecipeNumerics::require_options(const std::string& where,
                                     const net::TrainOptions& options) const {
  const net::ExchangeOrder order = recipe_->exchange().order;
  if (order.kind == net::ExchangeOrder::Kind::hierarchical && options.workers % order.node != 0) {
    throw Error(fmt::format("{}: exchange.order: {} needs a multiple of {} workers, there are {}",
                            where, to_string(order), order.node, options.workers));
  }
  for (const auto& policy : stack_.policies()) policy->require_options(where, options);
}

}  // namespace numemu::policies
