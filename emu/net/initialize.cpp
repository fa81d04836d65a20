// Initial parameters: normal deviates as a function of seed, name and index, without any library's
// distribution.
#include <cmath>
#include <utility>

#include "emu/net/graph.hpp"
#include "emu/net/math.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/float_guard.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace {

// Deviate i by Box and Muller (1958) from uniforms 2i and 2i + 1; the half step keeps the logarithm
// finite.
double normal(const RandomSource& source, std::uint64_t i) {
  const double u = (source.bits(2 * i, 32) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * double{log(static_cast<float>(u))});
  return radius * cos_pi(2 * source.uniform(2 * i + 1));
}

}  // namespace

void initialize(Graph& graph, std::uint64_t seed) {
  const FloatGuard guard;
  const Parameter* classifier = nullptr;
  for (const Node& node : graph.nodes) {
    for (const Parameter& parameter : std::as_const(*node.op).parameters()) {
      // A fixed classifier leaves the weights of the others alone; a constant is none.
      if (parameter.fan_in > 0 || (parameter.fan_in < 0 && !node.op->products().empty()))
        classifier = &parameter;
    }
  }
  for (Parameter* parameter : graph.parameters()) {
    if (parameter->fan_in < 0) continue;  // a constant of the graph
    std::vector<float>& data = parameter->value.data;
    if (parameter->fan_in == 0) {
      data.assign(data.size(), parameter->initial);
      continue;
    }
    // He et al. (2015): variance 2 / fan_in keeps the scale of activations through layers of ReLU.
    // Max-pooling makes them grow all the same, and logits with it; small last weights (variance
    // 1 / fan_in^2 as in Yang et al. 2022, Tensor Programs V) start the loss at ln(classes).
    const double fan_in = static_cast<double>(parameter->fan_in);
    const double deviation = parameter == classifier ? 1 / fan_in : std::sqrt(2 / fan_in);
    const RandomSource source{seed, Stream::init, tensor_word(parameter->name), 0};
    constexpr std::int64_t kWork = 64;  // a deviate costs as much as that many additions
    for_each_row(parameter->value.size(), kWork, [&](std::int64_t i) {
      data[i] = static_cast<float>(deviation * normal(source, static_cast<std::uint64_t>(i)));
    });
  }
}

}  // namespace numemu::net
