// A recipe's state that survives a restart: loss scale, masks, thresholds, histories, counts.
#include <fmt/format.h>

#include <array>
#include <map>

#include "formats/error.hpp"
#include "policies/recipe/role_numerics.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kLossScaleState = "recipe/loss_scale";
constexpr std::array<const char*, 3> kThresholdPlaces = {"dgrad", "wgrad", "input"};

std::string mask_name(std::string_view layer) { return fmt::format("recipe/mask/{}", layer); }

std::string threshold_name(std::string_view layer, std::size_t place) {
  return fmt::format("recipe/threshold/{}/{}", layer, kThresholdPlaces[place]);
}

std::string history_name(std::string_view layer, net::Role role, net::GemmKind kind) {
  return fmt::format("recipe/history/{}/{}/{}", layer, net::to_string(role), net::to_string(kind));
}

std::string counts_name(std::string_view layer, net::Role role, net::GemmKind kind) {
  return fmt::format("recipe/counts/{}/{}/{}", layer, net::to_string(role), net::to_string(kind));
}

void load_counts(const std::string& name, const std::string& bytes, SharedCounts& counts) {
  const std::vector<std::uint64_t> n = from_bytes(name, bytes);
  if (n.size() != 4)
    throw Error("state " + name + ": expected 4 numbers, found " + std::to_string(n.size()));
  const auto at = [&](int i) { return static_cast<std::int64_t>(n[i]); };
  counts.set({at(0), at(1), at(2), at(3)});
}

}  // namespace

void RoleNumerics::save_state(net::NamedState& state) const {
  state.emplace_back(kLossScaleState, loss_scaler_.state());
  for (const auto& [name, layer] : layers_) {
    if (layer->weight_mask) state.emplace_back(mask_name(name), layer->weight_mask->state());
    for (std::size_t place = 0; layer->masked && place < layer->thresholds.size(); ++place)
      state.emplace_back(threshold_name(name, place), layer->thresholds[place].state());
    for (const auto& [key, history] : layer->histories)
      state.emplace_back(history_name(name, key.first, key.second), history.state());
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        const OperandCounts c = layer->count(kind, role).get();
        if (c == OperandCounts{}) continue;
        const auto unsigned_of = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
        state.emplace_back(counts_name(name, role, kind),
                           to_bytes({unsigned_of(c.elements), unsigned_of(c.overflow),
                                     unsigned_of(c.underflow), unsigned_of(c.invalid)}));
      }
    }
  }
}

void RoleNumerics::load_state(const net::NamedState& state) {
  const std::map<std::string, std::string> by_name(state.begin(), state.end());
  const auto loss = by_name.find(kLossScaleState);
  if (loss != by_name.end()) loss_scaler_.load(loss->first, loss->second);
  for (auto& [name, layer] : layers_) {
    layer->histories.clear();
    if (layer->weight_mask) {
      const auto mask = by_name.find(mask_name(name));
      layer->weight_mask->load(mask_name(name), mask == by_name.end() ? "" : mask->second);
    }
    for (std::size_t place = 0; place < layer->thresholds.size(); ++place) {
      const auto thresholds = by_name.find(threshold_name(name, place));
      layer->thresholds[place].load(threshold_name(name, place),
                                    thresholds == by_name.end() ? "" : thresholds->second);
    }
    for (const net::Role role : kRoles) {
      for (const net::GemmKind kind : kGemmKinds) {
        const auto history = by_name.find(history_name(name, role, kind));
        const RoleQuantizer* const quantizer = layer->quantizer(role, kind);
        if (history != by_name.end() && quantizer != nullptr && quantizer->policy().history > 0)
          layer->histories[{role, kind}].load(history->first, history->second);
        layer->count(kind, role).set({});
        const auto counts = by_name.find(counts_name(name, role, kind));
        if (counts != by_name.end())
          load_counts(counts->first, counts->second, layer->count(kind, role));
      }
    }
  }
}

}  // namespace numemu::policies
