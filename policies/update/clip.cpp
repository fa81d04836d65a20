// Update rule clip: weights are held within [-limit, limit] after every update, as the real-valued
// masters of binarized networks are (Courbariaux et al. 2015, BinaryConnect; Hubara et al. 2016).
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

struct ClipOptions final : PolicyOptions {
  double limit = 1;
  bool scaled = false;
  std::vector<Option> list() override {
    return {{"limit", "largest magnitude of a weight after its update", &limit, 1e-6, 1e6},
            {"scaled",
             "whether a weight's increment is multiplied by sqrt((inputs + outputs) / 1.5) before",
             &scaled}};
  }
};

class Clip final : public Policy {
 public:
  Clip(Binding given, net::Numerics& inner) : Policy(std::move(given), inner) {
    for (const auto& [layer, chosen] : binding().layers) {
      const ClipOptions* const options = binding().of<ClipOptions>(layer);
      if (options != nullptr) check(layer, *options);
    }
  }

  /// Clips tensors of more than one axis: biases and the vectors of normalisations stay. NaN stays.
  void update(const net::Step& step, const net::Update& given) override {
    const ClipOptions* const options = binding().of<ClipOptions>(given.parameter);
    if (options == nullptr || given.value->shape.size() < 2) return Forwarding::update(step, given);
    net::Update update = given;
    std::vector<float> delta;
    if (options->scaled) {
      const float factor = rate_factor(given.value->shape);
      delta = *given.delta;
      for (float& d : delta) d *= factor;
      update.delta = &delta;
    }
    Forwarding::update(step, update);
    const auto limit = static_cast<float>(options->limit);
    float* const w = update.value->data.data();
    net::for_each_element(update.value->size(), [=](std::int64_t i) {
      const float below = w[i] > limit ? limit : w[i];
      w[i] = below < -limit ? -limit : below;
    });
  }

 private:
  /// The reciprocal of the coefficient that Glorot and Bengio (2010) give the weights [outputs,
  /// inputs ...], by which BinaryConnect's code multiplies the steps of Adam: signs change only
  /// where masters cross 0, so that masters have to travel as far in every layer.
  static float rate_factor(const net::Shape& shape) {
    constexpr double kCoefficient = 1.5;
    const auto outputs = static_cast<double>(shape[0]),
               inputs = static_cast<double>(net::element_count(shape)) / outputs;
    return static_cast<float>(std::sqrt((inputs + outputs) / kCoefficient));
  }

  /// Weights are clipped after they were rounded to the master format.
  void check(const std::string& layer, const ClipOptions& options) const {
    const Format* const master = binding().recipe->update().master;
    if (master == nullptr) return;
    const Value limit = value_of(static_cast<float>(options.limit));
    const Encoded held = encode(*master, limit, {}, Overflow::saturate);
    if ((held.flags & kInexact) == 0) return;
    throw Error(
        fmt::format("{}: layer {}: limit of clip: expected a number of update.master {}, "
                    "such as {}, found {}",
                    binding().where, layer, master->name, to_double(decode(*master, held.code)),
                    options.limit));
  }
};

}  // namespace

extern const PolicyKind update_clip{
    .key = "update.rule",
    .name = "clip",
    .summary = "weights are clipped after each update",
    .source =
        "Courbariaux et al., NeurIPS 2015 (arXiv 1511.00363); Hubara et al., NeurIPS 2016 "
        "(arXiv 1602.02830)",
    .options = make_options<ClipOptions>,
    .bind = make_policy<Clip>};

}  // namespace numemu::policies
