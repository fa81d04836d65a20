// Stochastic gradient descent with momentum and L2 decay: v = momentum v + g + decay w, w -= rate
// v; Nesterov's form looks ahead, w -= rate (g + decay w + momentum v) (Sutskever et al. 2013).
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const TrainOptions& options, std::span<const Parameter* const> parameters)
      : momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        nesterov_(options.nesterov),
        velocity_(zero_state(parameters)) {}

  void begin_step(double learning_rate) override { rate_ = static_cast<float>(learning_rate); }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    delta.resize(gradient.data.size());
    const float rate = rate_, momentum = momentum_, decay = decays(parameter) ? decay_ : 0;
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const v = velocity_[index].data.data();
    float* const d = delta.data();
    if (nesterov_) {
      for_each_element(gradient.size(), [=](std::int64_t i) {
        const float direction = g[i] + decay * w[i];
        v[i] = neutral(momentum * v[i] + direction);
        d[i] = -(rate * (direction + momentum * v[i]));
      });
      return;
    }
    for_each_element(gradient.size(), [=](std::int64_t i) {
      v[i] = neutral(momentum * v[i] + (g[i] + decay * w[i]));
      d[i] = -(rate * v[i]);
    });
  }

  std::vector<StateTensor> state(std::size_t index) override {
    if (velocity_[index].empty()) return {};
    return {{"velocity", &velocity_[index]}};
  }

 private:
  float momentum_, decay_, rate_ = 0;
  bool nesterov_;
  std::vector<Tensor> velocity_;
};

constexpr OptimizerName kSgdNames[] = {{"sgd", 0.05, 5e-4, false, false}};

}  // namespace

extern const OptimizerKind optimizer_sgd{
    kSgdNames,
    [](const TrainOptions& options, std::span<const Parameter* const> parameters)
        -> std::unique_ptr<Optimizer> { return std::make_unique<Sgd>(options, parameters); }};

}  // namespace numemu::net
