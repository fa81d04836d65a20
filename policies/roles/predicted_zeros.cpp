// Predicted zeros: what the predictors of a layer take for zero becomes zero, after the role vector
// has rounded the tensor.
#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::policies {
namespace {

class PredictedZeros final : public Policy {
 public:
  PredictedZeros(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const net::Node& node : binding().recipe.graph().nodes) {
      if (binding().layers.contains(node.name))
        networks_[node.name] = loaded(*binding().recipe.layer(node.name).zap);
    }
  }

  void vector_result(const net::Step& step, std::string_view layer, std::string_view op,
                     net::Tensor& result) override {
    Forwarding::vector_result(step, layer, op, result);
    const auto found = networks_.find(layer);
    if (found != networks_.end()) found->second->skip(layer, result);
  }

 private:
  /// Once for every file and threshold.
  std::shared_ptr<const ZapNetwork> loaded(const ZapMask& mask) {
    std::shared_ptr<const ZapNetwork>& slot = by_mask_[to_string(mask)];
    if (slot) return slot;
    at(binding().where + ": roles.vector.mask", [&] {
      ZapNetwork network = load_zap_network(with_digest(mask).file, binding().recipe.graph());
      if (mask.threshold) network.set_threshold(*mask.threshold);
      slot = std::make_shared<const ZapNetwork>(std::move(network));
    });
    return slot;
  }

  std::map<std::string, std::shared_ptr<const ZapNetwork>> by_mask_;
  std::map<std::string, std::shared_ptr<const ZapNetwork>, std::less<>> networks_;  ///< by node
};

}  // namespace

extern const PolicyKind roles_predicted_zeros{
    .key = "roles.vector.mask",
    .name = "zap",
    .summary = "elements that a layer's predictors take for zero become zero",
    .source = "Shomron et al., ECCV 2020 (arXiv 1909.07636)",
    .bind = make_policy<PredictedZeros>,
    .chosen_by = [](const Recipe&, const LayerRecipe& layer) { return layer.zap.has_value(); }};

}  // namespace numemu::policies
