// Stochastic gradient descent with heavy-ball momentum and L2 decay: v = momentum v + g + decay w,
// w -= rate v.
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const TrainOptions& options, std::size_t parameters)
      : momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        velocity_(parameters) {}

  void begin_step(double learning_rate) override { rate_ = static_cast<float>(learning_rate); }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    velocity_[index].resize(gradient.data.size());
    delta.resize(gradient.data.size());
    const float rate = rate_, momentum = momentum_, decay = decays(parameter) ? decay_ : 0;
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const v = velocity_[index].data();
    float* const d = delta.data();
    for_each_element(gradient.size(), [=](std::int64_t i) {
      v[i] = neutral(momentum * v[i] + (g[i] + decay * w[i]));
      d[i] = -(rate * v[i]);
    });
  }

 private:
  float momentum_, decay_, rate_ = 0;
  std::vector<std::vector<float>> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const TrainOptions& options, std::size_t parameters) {
  return std::make_unique<Sgd>(options, parameters);
}

}  // namespace numemu::net
