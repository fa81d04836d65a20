#include "policies/numerics/staged_numerics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/error.hpp"
#include "policies/recipe/choices.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kState = "recipe/stages";
constexpr const char* kLosses = "recipe/stages/losses";
constexpr std::size_t kFirstLosses = 10, kRecentLosses = 5;  // of turning points, as published
constexpr std::string_view kLossScale = "recipe/loss_scale", kMask = "recipe/mask/",
                           kThreshold = "recipe/threshold/", kHistory = "recipe/history/",
                           kCounts = "recipe/counts/";

std::string text_of(const std::optional<MaskPolicy>& mask) { return mask ? to_string(*mask) : ""; }

std::string text_of(const std::optional<PolicyChoice>& choice) {
  return choice ? policy_json(*choice).dump() : "";
}

std::string gradient_masks(const LayerRecipe& layer) {
  return text_of(layer.masks[RolePart::gradient_dgrad]) + " " +
         text_of(layer.masks[RolePart::gradient_wgrad]);
}

/// Whether all layers choose the same policy of a slot.
bool same_choice(const BoundRecipe& from, const BoundRecipe& to, std::size_t slot) {
  return std::ranges::all_of(from.graph().nodes, [&](const net::Node& node) {
    return text_of(from.policies(node.name)[slot]) == text_of(to.policies(node.name)[slot]);
  });
}

std::string place_of(const std::string& where, std::size_t stage) {
  return stage == 0 ? where : fmt::format("{}: stages[{}].patch", where, stage - 1);
}

std::vector<std::unique_ptr<RecipeNumerics>> numerics_of(const Recipe& recipe,
                                                         const net::Graph& graph,
                                                         const std::string& where) {
  std::vector<std::unique_ptr<RecipeNumerics>> all;
  for (std::size_t i = 0; i <= recipe.stages().size(); ++i) {
    const std::string place = place_of(where, i);
    all.push_back(std::make_unique<RecipeNumerics>(recipe.in_stage(i), graph, place));
    all.back()->require_trainable(place);
  }
  return all;
}

}  // namespace

net::NamedState carried_state(const BoundRecipe& from, const BoundRecipe& to,
                              net::NamedState state) {
  std::vector<std::string> kept = {std::string(kHistory), std::string(kCounts)};
  if (from->update().loss_scale == to->update().loss_scale) kept.emplace_back(kLossScale);
  for (const auto& [gemm, was] : from.products()) {
    const std::string& name = gemm.name;
    const LayerRecipe& is = to.layer(name);
    if (text_of(was.masks[RolePart::weight]) == text_of(is.masks[RolePart::weight]))
      kept.push_back(fmt::format("{}{}", kMask, name));
    if (gradient_masks(was) == gradient_masks(is))
      kept.push_back(fmt::format("{}{}/", kThreshold, name));
  }
  for (std::size_t i = 0; i < policy_slots().size(); ++i) {
    const PolicySlot& slot = policy_slots()[i];
    if (!same_choice(from, to, i)) continue;
    for (const PolicyKind* kind : all_policies()) {
      const std::string_view between = kind->name.empty() ? "" : "/";
      if (kind->key == slot.key)
        kept.push_back(fmt::format("recipe/{}{}{}/", slot.object(), between, kind->name));
    }
  }
  std::erase_if(state, [&](const auto& named) {
    return std::none_of(kept.begin(), kept.end(), [&](const std::string& name) {
      return name.ends_with('/') ? named.first.starts_with(name) : named.first == name;
    });
  });
  return state;
}

StagedNumerics::StagedNumerics(const Recipe& recipe, const net::Graph& graph,
                               const std::string& where)
    : StagedNumerics(recipe, numerics_of(recipe, graph, where)) {}

StagedNumerics::StagedNumerics(const Recipe& recipe, Parts numerics)
    : Forwarding(*numerics[0]), starts_(recipe.stages()), numerics_(std::move(numerics)) {}

void StagedNumerics::require_options(const std::string& where,
                                     const net::TrainOptions& options) const {
  for (std::size_t i = 0; i < numerics_.size(); ++i)
    numerics_[i]->require_options(place_of(where, i), options);
}

std::size_t StagedNumerics::stage(std::int64_t epoch) const {
  const auto later = std::upper_bound(begun_.begin(), begun_.end(), epoch);
  return static_cast<std::size_t>(later - begun_.begin());
}

bool StagedNumerics::begins(const StageStart& start, double loss) const {
  if (!start.turning_point) {
    return std::isfinite(best_) && !(best_ - loss >= start.plateau * std::abs(best_));
  }
  if (first_.empty()) return false;
  if (std::isnan(loss)) return true;
  double sum = 0;
  for (const double first : first_) sum += first;
  const double within = *start.turning_point * (sum / static_cast<double>(first_.size()));
  return recent_.size() == kRecentLosses &&
         std::ranges::all_of(recent_, [&](double x) { return std::abs(x - loss) <= within; });
}

std::size_t StagedNumerics::next(const net::Epoch& epoch, double loss) const {
  for (std::size_t i = starts_.size(); i > begun_.size(); --i) {
    if (starts_[i - 1].epoch == epoch.index + 1) return i;
  }
  if (begun_.size() == starts_.size()) return begun_.size();
  const StageStart& start = starts_[begun_.size()];
  return begun_.size() + (start.epoch == 0 && begins(start, loss) ? 1 : 0);
}

void StagedNumerics::end_epoch(const net::Epoch& epoch) {
  Forwarding::end_epoch(epoch);
  const double loss = std::isnan(epoch.validation_loss) ? epoch.train_loss : epoch.validation_loss;
  if (first_.size() < kFirstLosses && std::isfinite(loss)) first_.push_back(loss);
  recent_.push_back(loss);
  if (recent_.size() > kRecentLosses) recent_.erase(recent_.begin());
  const std::size_t from = begun_.size(), to = next(epoch, loss);
  if (loss < best_) best_ = loss;
  if (to == from) return;
  recent_.clear();
  net::NamedState state;
  numerics_[from]->save_state(state);
  numerics_[to]->load_state(
      carried_state(numerics_[from]->bound(), numerics_[to]->bound(), std::move(state)));
  begun_.resize(to, epoch.index + 1);
  forward_to(*numerics_[to]);
}

void StagedNumerics::save_state(net::NamedState& state) const {
  Forwarding::save_state(state);
  if (starts_.empty()) return;
  std::vector<std::uint64_t> numbers = {bits_of(best_)};
  numbers.insert(numbers.end(), begun_.begin(), begun_.end());
  state.emplace_back(kState, to_bytes(numbers));
  if (std::ranges::none_of(starts_,
                           [](const auto& start) { return start.turning_point.has_value(); }))
    return;
  std::vector<std::uint64_t> losses = {first_.size()};
  for (const auto* all : {&first_, &recent_})
    std::ranges::transform(*all, std::back_inserter(losses), bits_of);
  state.emplace_back(kLosses, to_bytes(losses));
}

void StagedNumerics::load_state(const net::NamedState& state) {
  std::vector<std::int64_t> begun;
  std::vector<double> first, recent;
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [name, bytes] : state) {
    if (name == kLosses) {
      const std::vector<std::uint64_t> numbers = from_bytes(name, bytes);
      const std::size_t count = numbers.empty() ? 0 : numbers[0];
      if (numbers.empty() || count > kFirstLosses || numbers.size() <= count ||
          numbers.size() - 1 - count > kRecentLosses) {
        throw Error(fmt::format("state {}: expected at most {} and {} losses", name, kFirstLosses,
                                kRecentLosses));
      }
      for (std::size_t i = 1; i < numbers.size(); ++i)
        (i <= count ? first : recent).push_back(double_of(numbers[i]));
    }
    if (name != kState) continue;
    const std::vector<std::uint64_t> numbers = from_bytes(name, bytes);
    if (!numbers.empty()) {
      best = double_of(numbers[0]);
      begun.assign(numbers.begin() + 1, numbers.end());
    }
    if (numbers.empty() || begun.size() > starts_.size() || !std::ranges::is_sorted(begun)) {
      throw Error(fmt::format("state {}: expected a loss and the first epochs of at most {} stages",
                              name, starts_.size()));
    }
  }
  numerics_[begun.size()]->load_state(state);
  begun_ = std::move(begun);
  best_ = best;
  first_ = std::move(first);
  recent_ = std::move(recent);
  forward_to(*numerics_[begun_.size()]);
}

}  // namespace numemu::policies
