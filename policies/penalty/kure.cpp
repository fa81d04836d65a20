// Penalty kure: pulls the kurtosis of a weight toward that of a uniform law, so that the weight
// bears any quantizer (Shkolnik et al., Robust Quantization, NeurIPS 2020).
#include <cmath>

#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"
#include "policies/policy.hpp"

namespace numemu::policies {
namespace {

struct KureOptions final : PolicyOptions {
  double weight = 1, target = 1.8;
  std::vector<Option> list() override {
    return {
        {"weight", "factor on the penalty; the published lambda / L of each layer", &weight, 0,
         1e6},
        {"target", "kurtosis that costs nothing; 1.8 is that of a uniform law", &target, 1, 1e6}};
  }
};

class Kure final : public Policy {
 public:
  using Policy::Policy;

  /// weight (kurtosis - target)^2 of tensors of more than one axis; biases and norms cost nothing.
  double penalty(const net::Step& step, std::string_view parameter, const net::Tensor& value,
                 net::Tensor& gradient) override {
    const double below = Forwarding::penalty(step, parameter, value, gradient);
    const KureOptions* const options = binding().of<KureOptions>(parameter);
    const std::int64_t n = value.size();
    if (options == nullptr || value.shape.size() < 2 || n == 0) return below;
    const float* const w = value.data.data();
    const auto mean_of = [&](auto term) {
      return pairwise_sum(n, [&](std::int64_t i) { return term(double{w[i]}); }) /
             static_cast<double>(n);
    };
    const double mean = mean_of([](double x) { return x; });
    const auto moment = [&](int power) {
      return mean_of([&](double x) {
        double product = 1;
        for (int i = 0; i < power; ++i) product *= x - mean;
        return product;
      });
    };
    const double m2 = moment(2), m3 = moment(3), m4 = moment(4);
    if (m2 == 0) return below;  // a constant weight has no kurtosis
    const double kurtosis = m4 / (m2 * m2), off = kurtosis - options->target;
    // d kurtosis / d w = 4 / (n m2^2) ((w - mean)^3 - m3 - kurtosis m2 (w - mean))
    const double factor = options->weight * 2 * off * 4 / (static_cast<double>(n) * m2 * m2);
    for (std::int64_t i = 0; i < n; ++i) {
      const double d = double{w[i]} - mean;
      gradient.data[i] += static_cast<float>(factor * (d * d * d - m3 - kurtosis * m2 * d));
    }
    return below + options->weight * off * off;
  }
};

}  // namespace

extern const PolicyKind penalty_kure{
    .key = "penalty",
    .name = "kure",
    .summary = "squared distance of each weight's kurtosis from a target",
    .source = "Shkolnik et al., NeurIPS 2020 (arXiv 2002.07686)",
    .options = make_options<KureOptions>,
    .bind = make_policy<Kure>};

}  // namespace numemu::policies
