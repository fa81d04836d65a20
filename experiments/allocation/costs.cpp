#include "experiments/allocation/costs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "emu/net/multiply_adds.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/glob.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/bits/effective_bits.hpp"

namespace numemu::experiments {
namespace {

constexpr double kFloat32Bits = 32;

class Counter : public net::Numerics {
 public:
  void product(const net::Step& step, const net::Product& p) override {
    counts[std::string(p.layer)] += net::multiply_adds(p);
    net::Numerics::product(step, p);
  }
  std::map<std::string, double> counts;
};

std::string format_name(const std::optional<policies::RolePolicy>& role) {
  if (!role) return "float32";
  return role->block != nullptr ? role->block->name : role->format->name;
}

double element_bits(const std::optional<policies::RolePolicy>& role) {
  return role ? role->format->bits : kFloat32Bits;
}

}  // namespace

MacCosts MacCosts::read(const std::string& path) {
  const Json json = parse_json(read_text(path), path);
  const JsonReader reader(json, path);
  reader.require_keys({"numemu_mac_costs", "costs"});
  reader.member("numemu_mac_costs").integer(0, 1, 1);
  const JsonReader costs = reader.member("costs");
  if (!costs.value().is_array() || costs.value().empty()) costs.fail("a list of costs");
  MacCosts out;
  out.path_ = path;
  for (std::size_t i = 0; i < costs.value().size(); ++i) {
    const JsonReader entry = costs.element(i);
    entry.require_keys({"weight", "activation", "unit", "cost"});
    const JsonReader cost = entry.member("cost");
    if (!cost.value().is_number() || !(cost.value().get<double>() >= 0) ||
        !std::isfinite(cost.value().get<double>()))
      cost.fail("a number of at least 0");
    out.entries_.push_back({entry.member("weight").text("*"), entry.member("activation").text("*"),
                            entry.member("unit").text("*"), cost.value().get<double>()});
  }
  return out;
}

double MacCosts::of(const policies::LayerRecipe& recipe) const {
  if (path_.empty()) {
    return element_bits(recipe[policies::RolePart::weight]) *
           element_bits(recipe[policies::RolePart::activation]) / (kFloat32Bits * kFloat32Bits);
  }
  const std::string weight = format_name(recipe[policies::RolePart::weight]),
                    activation = format_name(recipe[policies::RolePart::activation]),
                    unit = recipe.unit(net::GemmKind::fprop).row().name;
  for (const Entry& entry : entries_) {
    if (glob_match(entry.weight, weight) && glob_match(entry.activation, activation) &&
        glob_match(entry.unit, unit))
      return entry.cost;
  }
  throw Error(fmt::format("{}: no entry matches weight {}, activation {}, unit {}", path_, weight,
                          activation, unit));
}

std::vector<LayerSize> layer_sizes(const net::Graph& graph,
                                   const std::vector<net::Tensor>& sample) {
  Counter counter;
  net::forward(graph, sample, counter);
  std::vector<LayerSize> out;
  for (const net::GemmLayer& layer : net::gemm_layers(graph)) {
    const double weights = layer.weight == nullptr ? 0 : static_cast<double>(layer.weight->size());
    out.push_back({layer.name, weights, counter.counts[layer.name]});
  }
  return out;
}

double weight_bits(const net::GemmLayer& layer, const policies::LayerRecipe& recipe) {
  if (layer.weight == nullptr) return 0;
  return policies::stored_bits(recipe[policies::RolePart::weight], layer.weight->shape);
}

}  // namespace numemu::experiments
