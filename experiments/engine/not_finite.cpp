// Where a network's numbers stop being finite: in which layer's products, how many, and why.
#include "experiments/engine/not_finite.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "emu/net/gemm_layers.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

/// Share `i` of `shares` of a tensor, whole where it cannot be shared out.
bool finite_share(const net::Tensor& x, std::int64_t i, std::int64_t shares) {
  if (x.shape.empty() || x.dim(0) != shares || x.size() % shares != 0)
    return stats::count_finite(x.data.data(), x.size()).all_finite();
  const std::int64_t each = x.size() / shares;
  return stats::count_finite(x.data.data() + i * each, each).all_finite();
}

/// "float8_e5m2, overflow ieee" where values beyond the format's range leave it.
std::string leaving(const std::optional<policies::RolePolicy>& role) {
  if (!role || role->overflow == Overflow::saturate) return "";
  return fmt::format("{}, overflow {}", role->format->name, to_string(role->overflow));
}

/// "float16, at most 6.55e+04".
std::string limit(const Format& format) {
  return fmt::format("{}, at most {:.3g}", format.name, largest_value(format));
}

}  // namespace

NotFinite::NotFinite(const net::Graph& graph, const policies::RecipeNumerics& numerics)
    : graph_(graph), numerics_(numerics) {
  for (const std::string& name : net::gemm_layer_names(graph)) layers_[name];
}

void NotFinite::reset() {
  for (auto& [name, layer] : layers_) {
    for (auto* count : {&layer.of, &layer.nan, &layer.infinite, &layer.inherited,
                        &layer.born_infinite, &layer.born_nan})
      *count = 0;
  }
}

void NotFinite::add(const net::Product& p) {
  const auto found = layers_.find(p.layer);
  if (found == layers_.end()) return;
  Layer& layer = found->second;
  const std::int64_t size = p.d_stack.count() * p.m * p.n;
  const stats::FiniteCounts all = stats::count_finite(p.d, size);
  layer.of += size;
  if (all.all_finite()) return;
  layer.nan += all.nan;
  layer.infinite += all.infinite;
  // The samples of a batch share the result out equally; one whose operands were not finite
  // inherits.
  const net::Tensor &a = *p.a.source, &b = *p.b.source;
  const std::int64_t batch = a.shape.empty() ? 1 : a.dim(0);
  const std::int64_t shares = batch > 0 && size % batch == 0 ? batch : 1, each = size / shares;
  for (std::int64_t i = 0; i < shares; ++i) {
    const stats::FiniteCounts own = stats::count_finite(p.d + i * each, each);
    if (own.all_finite()) continue;
    if (finite_share(a, i, shares) &&
        finite_share(b, i, p.b.role == net::Role::weight ? 1 : shares)) {
      layer.born_nan += own.nan;
      layer.born_infinite += own.infinite;
    } else {
      layer.inherited += own.nan + own.infinite;
    }
  }
}

Json NotFinite::causes(const std::string& name, const Layer& layer) const {
  Json out = Json::array();
  if (layer.born_nan + layer.born_infinite > 0) {
    const policies::LayerRecipe& recipe = numerics_.recipe(name);
    const unit::Unit& unit = *recipe.fprop;
    const Format* const d = unit.d_format();
    const Format* const sum =
        unit.description() != nullptr ? unit.description()->accumulator.format : d;
    std::vector<std::string> possible;
    // Operands that a conversion made infinite or NaN are not seen apart from sums that overflow.
    const bool operands = numerics_.counts(name, net::GemmKind::fprop).overflow > 0;
    for (const auto& [role, policy] :
         {std::pair("weight", &recipe.weight), {"activation", &recipe.activation}}) {
      if (const std::string words = leaving(*policy); operands && !words.empty())
        possible.push_back(fmt::format("operand overflow ({} {})", role, words));
    }
    if (sum != nullptr && d != nullptr && d != sum) {
      possible.push_back(fmt::format("accumulator or result overflow (accumulator {}; result {})",
                                     limit(*sum), limit(*d)));
    } else if (d != nullptr) {
      possible.push_back(fmt::format("accumulator overflow ({})", limit(*d)));
    } else {
      possible.emplace_back("overflow of the scaled result (float32)");
    }
    if (const std::string words = leaving(recipe.output); !words.empty())
      possible.push_back(fmt::format("overflow of the role output ({})", words));
    out.push_back(fmt::format("{}", fmt::join(possible, " or ")));
    const bool infinities = sum == nullptr || sum->has_infinity();
    if (layer.born_nan > 0 && infinities) out.push_back("inf - inf");
  }
  if (layer.inherited > 0) out.push_back("operands that were not finite before");
  return out;
}

Json NotFinite::json(std::int64_t samples, const stats::FiniteCounts& outputs) const {
  Json layers = Json::array();
  for (const std::string& name : net::gemm_layer_names(graph_)) {
    const Layer& layer = layers_.at(name);
    if (layer.nan + layer.infinite == 0) continue;
    layers.push_back({{"name", name},
                      {"of", layer.of.load()},
                      {"nan", layer.nan.load()},
                      {"infinite", layer.infinite.load()},
                      {"inherited", layer.inherited.load()},
                      {"causes", causes(name, layer)}});
  }
  if (layers.empty() && outputs.all_finite()) return nullptr;
  return {{"samples", samples},
          {"outputs", {{"of", outputs.of}, {"nan", outputs.nan}, {"infinite", outputs.infinite}}},
          {"layers", layers}};
}

}  // namespace numemu::experiments
