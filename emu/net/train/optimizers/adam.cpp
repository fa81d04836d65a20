// Adam (Kingma and Ba 2015), its decay decoupled (AdamW, Loshchilov and Hutter 2019) or an L2 term
// of the gradient: moments and step in float32.
#include <array>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const TrainOptions& options, std::span<const Parameter* const> parameters, bool decoupled)
      : options_(options),
        decoupled_(decoupled),
        first_(zero_state(parameters)),
        second_(zero_state(parameters)) {}

  void begin_step(double learning_rate) override {
    rate_ = static_cast<float>(learning_rate);
    powers_[0] *= options_.beta1;
    powers_[1] *= options_.beta2;
  }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    delta.resize(gradient.data.size());
    const float beta1 = static_cast<float>(options_.beta1),
                rest1 = static_cast<float>(1 - options_.beta1);
    const float beta2 = static_cast<float>(options_.beta2),
                rest2 = static_cast<float>(1 - options_.beta2);
    const float unbias1 = static_cast<float>(1 / (1 - powers_[0])),
                unbias2 = static_cast<float>(1 / (1 - powers_[1]));
    const float epsilon = static_cast<float>(options_.epsilon), rate = rate_;
    const float decay = decays(parameter) ? static_cast<float>(options_.weight_decay) : 0;
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const m = first_[index].data.data();
    float* const v = second_[index].data.data();
    float* const d = delta.data();
    const auto direction = [=](std::int64_t i, float gradient_i) {
      m[i] = neutral(beta1 * m[i] + rest1 * gradient_i);
      v[i] = neutral(beta2 * v[i] + rest2 * gradient_i * gradient_i);
      return (m[i] * unbias1) / (std::sqrt(v[i] * unbias2) + epsilon);
    };
    // Not for_each_element: a square root that may set errno cannot be vectorised.
    if (decoupled_) {
      for_each_row(gradient.size(), 1,
                   [=](std::int64_t i) { d[i] = -(rate * (direction(i, g[i]) + decay * w[i])); });
    } else {
      for_each_row(gradient.size(), 1,
                   [=](std::int64_t i) { d[i] = -(rate * direction(i, g[i] + decay * w[i])); });
    }
  }

  std::vector<StateTensor> state(std::size_t index) override {
    if (first_[index].empty()) return {};
    return {{"first", &first_[index]}, {"second", &second_[index]}};
  }
  std::vector<double*> scalars() override { return {&powers_[0], &powers_[1]}; }

 private:
  TrainOptions options_;
  bool decoupled_;
  float rate_ = 0;
  std::array<double, 2> powers_{1, 1};  // beta1^t, beta2^t
  std::vector<Tensor> first_, second_;
};

constexpr std::string_view kL2 = "adam-l2";
// "adam" has been the decoupled one since the first checkpoints; the one of Kingma and Ba with an
// L2 term goes by what sets it apart.
constexpr OptimizerName kAdamNames[] = {
    {"adam", 0.002, 0.01}, {"adamw", 0.002, 0.01}, {kL2, 0.002, 1e-4}};

}  // namespace

extern const OptimizerKind optimizer_adam{
    kAdamNames,
    [](const TrainOptions& options,
       std::span<const Parameter* const> parameters) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Adam>(options, parameters, options.optimizer != kL2);
    }};

}  // namespace numemu::net
