// Exchange majority: each worker sends the signs of its momentum, and the sign of most of them
// comes back.
#include "emu/net/ops/elementwise.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct MajorityOptions final : PolicyOptions {
  double beta = 0.9;
  std::vector<Option> list() override {
    return {
        {"beta", "momentum on the worker; 0: signs of the gradient itself", &beta, 0, 0.999999}};
  }
};

class Majority final : public ExchangeRule {
 public:
  using ExchangeRule::ExchangeRule;

  void save_state(net::NamedState& state) const override {
    ExchangeRule::save_state(state);
    momenta_.save(state);
  }
  void load_state(const net::NamedState& state) override {
    ExchangeRule::load_state(state);
    momenta_.load(state);
  }

 private:
  bool takes(const net::Shape&) const override { return true; }

  void local(const Message& message, Values gradient) override {
    const double beta = message.as<MajorityOptions>().beta;
    if (beta == 0) return;
    float* const m = momenta_.of(state_name(message), gradient.size()).data();
    float* const x = gradient.data();
    net::for_each_element(
        std::ssize(gradient),
        [=, decay = static_cast<float>(beta), rest = static_cast<float>(1 - beta)](std::int64_t i) {
          x[i] = m[i] = net::neutral(decay * m[i] + rest * x[i]);
        });
  }

  double send(const Message& message, Values momentum) override {
    return sign(message, "send", momentum);
  }
  double give_back(const Message& message, Values votes, double) override {
    return sign(message, "return", votes);
  }

  /// One bit has no third value: the sign of a zero, and of a tie, is drawn.
  double sign(const Message& message, std::string_view use, Values x) const {
    for (float& value : x) value = value > 0 ? 1.0f : value < 0 ? -1.0f : value;
    draw_signs(sign_random(binding().recipe->seed(), message, use), x);
    return static_cast<double>(x.size());
  }

  WorkerState momenta_{"recipe/exchange/majority"};
};

}  // namespace

extern const PolicyKind exchange_majority{
    .key = "exchange",
    .name = "majority",
    .summary = "each worker sends the signs of its momentum; the sign of most comes back",
    .source = "Bernstein et al., ICLR 2019 (arXiv 1810.05291)",
    .options = make_options<MajorityOptions>,
    .bind = make_policy<Majority>};

}  // namespace numemu::policies
