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
  std::vector<Option> list() override {
    return {{"limit", "largest magnitude of a weight after its update", &limit, 1e-6, 1e6}};
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
  void update(const net::Step& step, const net::Update& update) override {
    Forwarding::update(step, update);
    const ClipOptions* const options = binding().of<ClipOptions>(update.parameter);
    if (options == nullptr || update.value->shape.size() < 2) return;
    const auto limit = static_cast<float>(options->limit);
    float* const w = update.value->data.data();
    net::for_each_element(update.value->size(), [=](std::int64_t i) {
      const float below = w[i] > limit ? limit : w[i];
      w[i] = below < -limit ? -limit : below;
    });
  }

 private:
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

extern const PolicyKind update_clip;
const PolicyKind update_clip{
    .key = "update.rule",
    .name = "clip",
    .summary = "weights are clipped after each update",
    .source =
        "Courbariaux et al., NeurIPS 2015 (arXiv 1511.00363); Hubara et al., NeurIPS 2016 "
        "(arXiv 1602.02830)",
    .options = make_options<ClipOptions>,
    .bind = make_policy<Clip>};

}  // namespace numemu::policies
