// Exchange adacomp: each bin of a tensor sends, at one magnitude, the elements that its residual
// and the newest gradient take past the bin's largest (AdaComp, Chen et al., AAAI 2018).
#include <cmath>
#include <numeric>

#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct AdaCompOptions final : PolicyOptions {
  std::int64_t bin = 50, matrix = 0;
  std::vector<Option> list() override {
    return {{"bin", "elements of a bin", &bin, 1, 16384},
            {"matrix", "the same of tensors of two axes; 0: `bin`", &matrix, 0, 16384}};
  }
};

class AdaComp final : public ErrorFeedback {
 public:
  AdaComp(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, "recipe/exchange/adacomp") {}

 private:
  /// G = x, H = G + gradient. The last bin may be short; a bin of zeros sends nothing.
  double compress(const Message& message, std::span<const float> gradient, Values x) override {
    const AdaCompOptions& options = message.as<AdaCompOptions>();
    const bool matrix = options.matrix > 0 && message.shape.size() == 2;
    const auto bin = static_cast<std::size_t>(matrix ? options.matrix : options.bin);
    std::vector<float> largest((x.size() + bin - 1) / bin);
    for (std::size_t i = 0; i < x.size(); ++i)
      largest[i / bin] = std::max(largest[i / bin], std::fabs(x[i]));
    const auto scale = static_cast<float>(std::accumulate(largest.begin(), largest.end(), 0.0) /
                                          static_cast<double>(largest.size()));
    std::size_t sent = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool goes = x[i] != 0 && std::fabs(x[i] + gradient[i]) >= largest[i / bin];
      sent += goes;
      x[i] = goes ? std::copysign(scale, x[i]) : 0;
    }
    // A place of 6 or 14 bits and a value of 2; the scale.
    return message.value_bits + (bin <= 64 ? 8.0 : 16.0) * static_cast<double>(sent);
  }
};

}  // namespace

extern const PolicyKind exchange_adacomp{
    .key = "exchange",
    .name = "adacomp",
    .summary = "each bin sends the elements that reach its largest with the newest gradient twice",
    .source = "Chen et al., AAAI 2018 (arXiv 1712.02679)",
    .options = make_options<AdaCompOptions>,
    .bind = make_policy<AdaComp>};

}  // namespace numemu::policies
