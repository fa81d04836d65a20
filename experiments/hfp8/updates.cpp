#include "experiments/hfp8/updates.hpp"

#include <algorithm>
#include <cmath>

namespace numemu::experiments::hfp8 {

double ulp_of(const Format& format, double w) {
  const int lowest = 1 - format.bias;
  const int exponent = w == 0 ? lowest : std::max(lowest, std::ilogb(w));
  return std::ldexp(1, exponent - format.mantissa_bits);
}

void UpdateWatch::see(const net::Graph& graph, std::int64_t step) {
  const bool looks = step > 0 && step % every_ == 0, next = (step + 1) % every_ == 0;
  for (const net::Parameter* const parameter : graph.parameters()) {
    if (!parameter->trained || parameter->value.shape.size() < 2) continue;
    const std::vector<float>& w = parameter->value.data;
    if (looks) {
      const std::vector<float>& old = before_.at(parameter->name);
      std::int64_t small = 0, unchanged = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double change = std::fabs(double{w[i]} - old[i]);
        small += change < ulp_of(master_, old[i]) / 2;
        unchanged += change == 0;
      }
      const auto n = static_cast<double>(w.size());
      records_.push_back({{"step", step},
                          {"layer", parameter->name},
                          {"small", static_cast<double>(small) / n},
                          {"unchanged", static_cast<double>(unchanged) / n}});
    }
    if (next) before_[parameter->name] = w;
  }
}

}  // namespace numemu::experiments::hfp8
