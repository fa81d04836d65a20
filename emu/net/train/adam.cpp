// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019): moments and
// step in float32.
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const TrainOptions& options, std::size_t parameters)
      : options_(options), first_(parameters), second_(parameters) {}

  void begin_step(double learning_rate) override {
    rate_ = static_cast<float>(learning_rate);
    power1_ *= options_.beta1;
    power2_ *= options_.beta2;
  }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    first_[index].resize(gradient.data.size());
    second_[index].resize(gradient.data.size());
    delta.resize(gradient.data.size());
    const float beta1 = static_cast<float>(options_.beta1),
                rest1 = static_cast<float>(1 - options_.beta1);
    const float beta2 = static_cast<float>(options_.beta2),
                rest2 = static_cast<float>(1 - options_.beta2);
    const float unbias1 = static_cast<float>(1 / (1 - power1_)),
                unbias2 = static_cast<float>(1 / (1 - power2_));
    const float epsilon = static_cast<float>(options_.epsilon), rate = rate_;
    const float decay = decays(parameter) ? static_cast<float>(options_.weight_decay) : 0;
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const m = first_[index].data();
    float* const v = second_[index].data();
    float* const d = delta.data();
    // Not for_each_element: a square root that may set errno cannot be vectorised.
    for_each_row(gradient.size(), 1, [=](std::int64_t i) {
      m[i] = neutral(beta1 * m[i] + rest1 * g[i]);
      v[i] = neutral(beta2 * v[i] + rest2 * g[i] * g[i]);
      const float direction = (m[i] * unbias1) / (std::sqrt(v[i] * unbias2) + epsilon);
      d[i] = -(rate * (direction + decay * w[i]));
    });
  }

 private:
  TrainOptions options_;
  float rate_ = 0;
  double power1_ = 1, power2_ = 1;  // beta1^t, beta2^t
  std::vector<std::vector<float>> first_, second_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(const TrainOptions& options, std::size_t parameters) {
  return std::make_unique<Adam>(options, parameters);
}

}  // namespace numemu::net
