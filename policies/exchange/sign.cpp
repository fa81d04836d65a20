// Exchange sign: each worker sends the signs of its gradients, scaled by their mean magnitude, and
// keeps the rest for later steps.
#include <cmath>

#include "formats/portable/pairwise.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct SignOptions final : PolicyOptions {};

class Sign final : public ErrorFeedback {
 public:
  Sign(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, "recipe/exchange/sign") {}

 private:
  /// The scale that leaves the least error: |x|_1 / n, of |x|^2 - |x|_1^2 / n. What is not finite
  /// travels as it is, so that no residual keeps it.
  double compress(const Message&, std::span<const float>, Values x) override {
    const double sum = pairwise_sum(std::ssize(x), [&](std::int64_t i) {
      const double value = x[static_cast<std::size_t>(i)];
      return std::isfinite(value) ? std::fabs(value) : 0;
    });
    const auto scale = static_cast<float>(sum / static_cast<double>(x.size()));
    for (float& value : x) {
      if (std::isfinite(value)) value = value < 0 ? -scale : scale;
    }
    return static_cast<double>(x.size()) + kScaleBits;
  }

  static constexpr double kScaleBits = 32;
};

}  // namespace

extern const PolicyKind exchange_sign{
    .key = "exchange",
    .name = "sign",
    .summary =
        "each worker sends signs times their mean magnitude and keeps the rest for later steps",
    .source = "Karimireddy et al., ICML 2019 (arXiv 1901.09847)",
    .options = make_options<SignOptions>,
    .bind = make_policy<Sign>};

}  // namespace numemu::policies
