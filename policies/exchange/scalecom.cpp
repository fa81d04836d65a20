// Exchange scalecom: workers take turns to choose the places of their largest elements for all, and
// what is kept passes a low-pass filter (ScaleCom, Chen et al., NeurIPS 2020).
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct ScaleComOptions final : PolicyOptions {
  double share = 0.01, filter = 1;
  std::vector<Option> list() override {
    return {{"share", "part of each tensor's elements that workers send, at least one element",
             &share, 1e-6, 1},
            {"filter", "weight of what a step leaves in the next residual; 1: all is kept", &filter,
             1e-3, 1}};
  }
};

class ScaleCom final : public ErrorFeedback {
 public:
  ScaleCom(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, "recipe/exchange/scalecom") {}

 private:
  void see(const Message& message, std::span<const std::span<const float>> all) override {
    leader_ = message.step.index % std::ssize(all);
    const std::span<const float> x = all[static_cast<std::size_t>(leader_)];
    places_ = largest(x, sent_elements(message.as<ScaleComOptions>().share, x.size()));
  }
  /// The leader's places travel to all.
  double compress(const Message& message, std::span<const float>, Values x) override {
    keep_only(places_, x);
    const double place = message.sender == leader_ ? message.index_bits() : 0;
    return static_cast<double>(places_.size()) * (place + message.value_bits);
  }
  float keep(const Message& message, float x, float residual, float sent) const override {
    const auto filter = static_cast<float>(message.as<ScaleComOptions>().filter);
    const float left = ErrorFeedback::keep(message, x, residual, sent);
    return filter == 1 ? left : (1 - filter) * residual + filter * left;
  }
  double give_back(const Message& message, Values mean, double) override {
    return static_cast<double>(sent_elements(message.as<ScaleComOptions>().share, mean.size())) *
           message.value_bits;
  }

  std::vector<std::size_t> places_;  ///< of the tensor that is sent
  std::int64_t leader_ = 0;
};

}  // namespace

extern const PolicyKind exchange_scalecom{
    .key = "exchange",
    .name = "scalecom",
    .summary = "workers take turns to choose the places of their largest elements for all",
    .source = "Chen et al., NeurIPS 2020 (arXiv 2104.11125)",
    .options = make_options<ScaleComOptions>,
    .bind = make_policy<ScaleCom>};

}  // namespace numemu::policies
