// Exchange randomk: all workers send the elements at the same random places, which are a function
// of seed and step and so need not travel, and keep the rest (Stich et al., NeurIPS 2018).
#include <bit>

#include "policies/exchange/base/rule.hpp"
#include "policies/numerics/random_identity.hpp"

namespace numemu::policies {
namespace {

struct RandomKOptions final : PolicyOptions {
  double share = 0.01;
  std::vector<Option> list() override {
    return {{"share", "part of each tensor's elements that workers send, at least one element",
             &share, 1e-6, 1}};
  }
};

class RandomK final : public ErrorFeedback {
 public:
  RandomK(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, "recipe/exchange/randomk") {}

 private:
  void see(const Message& message, std::span<const std::span<const float>> all) override {
    const RandomSource random = stored_random(binding().recipe->seed(), message.parameter,
                                              "exchange", message.step, "places");
    std::vector<float> keys;  // uniform bits of a magnitude
    for (std::size_t i = 0; i < all.front().size(); ++i)
      keys.push_back(std::bit_cast<float>(random.bits(i, 31)));
    places_ = largest(keys, sent_elements(message.as<RandomKOptions>().share, keys.size()));
  }
  double compress(const Message& message, std::span<const float>, Values x) override {
    keep_only(places_, x);
    return static_cast<double>(places_.size()) * message.value_bits;
  }
  double give_back(const Message& message, Values mean, double) override {
    return static_cast<double>(sent_elements(message.as<RandomKOptions>().share, mean.size())) *
           message.value_bits;
  }

  std::vector<std::size_t> places_;  ///< of the tensor that is sent
};

}  // namespace

extern const PolicyKind exchange_randomk{
    .key = "exchange",
    .name = "randomk",
    .summary = "all workers send the elements at the same random places and keep the rest",
    .source = "Stich et al., NeurIPS 2018 (arXiv 1809.07599)",
    .options = make_options<RandomKOptions>,
    .bind = make_policy<RandomK>};

}  // namespace numemu::policies
