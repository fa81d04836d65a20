// Update rule residual: what rounding to a low-precision master loses is kept and takes part in the
// next update (the round-off residual of HFP8, Sun et al. 2019): t = (w + e) + delta, w = round(t),
// e = t - w. With t and e in float32, w + e is bit for bit what float32 masters would be.
#include <algorithm>

#include "emu/net/ops/elementwise.hpp"
#include "formats/quantize.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/update_json.hpp"
#include "policies/update/parameter_state.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kResidualState = "recipe/update/residual";
constexpr const char* kFloat32 = "float32";

constexpr TextKind kFormat{
    "format", [](const std::string& text) {
      const Format& format = find_format(text);
      if (format.name != kFloat32 && !serves_master(format)) {
        throw Error("expected float32 or a format that update.master may be, not " + format.name);
      }
      return format.name;
    }};

struct ResidualOptions final : PolicyOptions {
  std::string format = kFloat32, sum = kFloat32;
  std::vector<Option> list() override {
    return {{"format",
             "of the residual, unscaled and saturating: float32, or one that update.master may "
             "be",
             &format,
             0,
             0,
             {},
             &kFormat},
            {"sum",
             "of weight + residual + increment before it is rounded to the master; as published: "
             "hfp16_e6m9",
             &sum,
             0,
             0,
             {},
             &kFormat}};
  }
};

/// To nearest even.
void round_to(const std::string& format, float* x, std::int64_t n) {
  if (format != kFloat32) quantize_values({.format = &find_format(format)}, x, n, 1, x);
}

class Residual final : public Policy {
 public:
  using Policy::Policy;

  void update(const net::Step& step, const net::Update& update) override {
    const ResidualOptions* const options = binding().of<ResidualOptions>(update.parameter);
    if (options == nullptr) return Forwarding::update(step, update);
    const std::int64_t n = update.value->size();
    std::vector<float>& residual = residuals_[std::string(update.parameter)];
    residual.resize(static_cast<std::size_t>(n));
    float* const w = update.value->data.data();
    float* const e = residual.data();
    const float* const delta = update.delta->data();
    net::for_each_element(n, [=](std::int64_t i) {
      w[i] = net::neutral(w[i] + e[i]);
      e[i] = net::neutral(w[i] + delta[i]);
    });
    if (options->sum == kFloat32) {
      Forwarding::update(step, update);
    } else {
      round_to(options->sum, e, n);
      std::copy_n(e, n, w);
      zeros_.assign(static_cast<std::size_t>(n), 0);
      net::Update rounded = update;
      rounded.delta = &zeros_;
      Forwarding::update(step, rounded);
    }
    net::for_each_element(n, [=](std::int64_t i) { e[i] = net::neutral(e[i] - w[i]); });
    round_to(options->format, e, n);
  }

  void save_state(net::NamedState& state) const override {
    Forwarding::save_state(state);
    save_tensors(kResidualState, residuals_, state);
  }
  void load_state(const net::NamedState& state) override {
    residuals_ = load_parameters<ResidualOptions>(
        kResidualState, binding(), state,
        [](const ResidualOptions&, const net::Tensor& value) { return value.data.size(); });
    Forwarding::load_state(state);
  }

 private:
  StateTensors residuals_;  ///< by parameter
  std::vector<float> zeros_;
};

}  // namespace

extern const PolicyKind update_residual{
    .key = "update.rule",
    .name = "residual",
    .summary = "what rounding to update.master loses is added to the next update",
    .source = "Sun et al., NeurIPS 2019 (HFP8)",
    .options = make_options<ResidualOptions>,
    .bind = [](Binding binding, net::Numerics& inner) -> std::unique_ptr<Policy> {
      if (binding.recipe->update().master == nullptr) {
        throw Error(binding.where +
                    ": residual: expected an update.master other than float32, whose rounding the "
                    "residual repairs");
      }
      return std::make_unique<Residual>(std::move(binding), inner);
    }};

}  // namespace numemu::policies
