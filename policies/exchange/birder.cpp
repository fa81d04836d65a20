// Exchange birder: each worker sends its own update direction, a ratio of moving means in [-1, 1],
// as one random sign for each element; the mean comes back as one random sign, too.
#include <fmt/format.h>

#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/options.hpp"
#include "formats/error.hpp"
#include "policies/exchange/base/rule.hpp"

namespace numemu::policies {
namespace {

struct BirderOptions final : PolicyOptions {
  double beta = 0.95;
  std::int64_t stages = 2;
  std::vector<Option> list() override {
    return {
        {"beta", "of the moving means of gradients and of their magnitudes", &beta, 0, 0.999999},
        {"stages", "2: the mean comes back as random signs; 1: as it is", &stages, 1, 2}};
  }
};

class Birder final : public ExchangeRule {
 public:
  Birder(Binding given, net::Numerics& inner) : ExchangeRule(std::move(given), inner) {
    const std::string& optimizer = binding().recipe->update().optimizer;
    if (optimizer != "sgd") {
      throw Error(fmt::format(
          "{}: exchange.rule: birder: expected update.optimizer sgd, as what comes back is the "
          "direction of the update, not {}",
          binding().where, optimizer));
    }
  }

  void require_options(const std::string& where, const net::TrainOptions& options) const override {
    if (options.momentum == 0) return;
    throw Error(fmt::format(
        "{}: exchange.rule: birder: expected no momentum, as what comes back is the direction of "
        "the update, not {}",
        where, options.momentum));
  }

  void save_state(net::NamedState& state) const override {
    ExchangeRule::save_state(state);
    means_.save(state);
  }
  void load_state(const net::NamedState& state) override {
    ExchangeRule::load_state(state);
    means_.load(state);
  }

 private:
  bool takes(const net::Shape&) const override { return true; }

  /// m / b, which lies in [-1, 1]: |m| <= b holds for the rounded means, too, as rounding is
  /// monotone. 0 where no gradient was seen.
  void local(const Message& message, Values gradient) override {
    const auto& options = message.as<BirderOptions>();
    const float beta = static_cast<float>(options.beta),
                rest = static_cast<float>(1 - options.beta);
    float* const m = means_.of(state_name(message) + "/mean", gradient.size()).data();
    float* const b = means_.of(state_name(message) + "/magnitude", gradient.size()).data();
    float* const x = gradient.data();
    net::for_each_element(std::ssize(gradient), [=](std::int64_t i) {
      m[i] = net::neutral(beta * m[i] + rest * x[i]);
      b[i] = net::neutral(beta * b[i] + rest * std::fabs(x[i]));
      x[i] = b[i] == 0 ? 0.0f : net::neutral(m[i] / b[i]);
    });
  }

  double send(const Message& message, Values direction) override {
    draw_signs(sign_random(binding().recipe->seed(), message, "send"), direction);
    return static_cast<double>(direction.size());
  }

  double give_back(const Message& message, Values mean, double bits) override {
    if (message.as<BirderOptions>().stages == 1) return bits;
    draw_signs(sign_random(binding().recipe->seed(), message, "return"), mean);
    return static_cast<double>(mean.size());
  }

  WorkerState means_{"recipe/exchange/birder"};
};

}  // namespace

extern const PolicyKind exchange_birder{
    .key = "exchange",
    .name = "birder",
    .summary =
        "each worker sends its update direction as random signs; the mean comes back so, too",
    .source = "Peng et al., NeurIPS 2023",
    .options = make_options<BirderOptions>,
    .bind = make_policy<Birder>};

}  // namespace numemu::policies
