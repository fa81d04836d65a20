// Master format: after its update a parameter is rounded to a low-precision format, without a scale
// and saturating.
#include "policies/numerics/random_identity.hpp"
#include "policies/numerics/stored_tensor.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

RolePolicy unscaled(const UpdatePolicy& update) {
  RolePolicy policy;
  policy.format = update.master;
  policy.rounding = update.rounding;
  policy.scale = "none";
  return policy;
}

class Master final : public Policy, public LeavesWeights {
 public:
  Master(Binding given, net::Numerics& inner)
      : Policy(std::move(given), inner), quantizer_(unscaled(binding().recipe->update())) {}

  void update(const net::Step& step, const net::Update& update) override {
    Forwarding::update(step, update);
    RandomSource random;
    if (quantizer_.stochastic()) {
      random = stored_random(binding().recipe->seed(), update.parameter, "update", step, "master");
    }
    net::Tensor& x = *update.value;
    fake_quantize(quantizer_, x.shape, x.data.data(), 1, {random, 0});
  }

 private:
  RoleQuantizer quantizer_;
};

}  // namespace

extern const PolicyKind update_master{.key = "update.master",
                                      .name = "",
                                      .summary = "updated parameters are rounded to a format",
                                      .source = "Gupta et al., ICML 2015 (arXiv 1502.02551)",
                                      .bind = make_policy<Master>,
                                      .chosen_by = [](const Recipe& recipe, const LayerRecipe&) {
                                        const Format* const master = recipe.update().master;
                                        return master != nullptr && master->name != "float32";
                                      }};

}  // namespace numemu::policies
