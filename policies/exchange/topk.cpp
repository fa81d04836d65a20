// Exchange topk: each worker sends the largest elements of its gradients and keeps the rest for
// later steps (Aji and Heafield, EMNLP 2017; error feedback: Stich et al., NeurIPS 2018).
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct TopKOptions final : PolicyOptions {
  double share = 0.01;
  std::vector<Option> list() override {
    return {{"share", "part of each tensor's elements that a worker sends, at least one element",
             &share, 1e-6, 1}};
  }
};

class TopK final : public ErrorFeedback {
 public:
  TopK(Binding given, net::Numerics& inner)
      : ErrorFeedback(std::move(given), inner, "recipe/exchange/topk") {}

 private:
  double compress(const Message& message, std::span<const float>, Values x) override {
    const std::size_t count = sent_elements(message.as<TopKOptions>().share, x.size());
    keep_only(largest(x, count), x);
    return static_cast<double>(count) * (message.index_bits() + message.value_bits);
  }
};

}  // namespace

extern const PolicyKind exchange_topk{
    .key = "exchange",
    .name = "topk",
    .summary = "each worker sends its largest elements and keeps the rest for later steps",
    .source = "Aji and Heafield, EMNLP 2017 (arXiv 1704.05021)",
    .options = make_options<TopKOptions>,
    .bind = make_policy<TopK>};

}  // namespace numemu::policies
