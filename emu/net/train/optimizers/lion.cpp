// Lion (Chen et al., Symbolic Discovery of Optimization Algorithms, NeurIPS 2023, arXiv
// 2302.06675): the sign of a mean of momentum and gradient, decay decoupled; one state.
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {
namespace {

struct LionOptions final : OptionSet {
  double beta1 = 0.9, beta2 = 0.99;
  std::vector<Option> list() override {
    return {{"beta1", "weight of the momentum in the step", &beta1, 0, 1},
            {"beta2", "decay of the momentum", &beta2, 0, 1}};
  }
};

class Lion final : public Optimizer {
 public:
  Lion(const TrainOptions& options, std::span<const Parameter* const> parameters)
      : own_(own_options<LionOptions>(options.optimizer)),
        decay_(static_cast<float>(options.weight_decay)),
        first_(zero_state(parameters)) {}

  void begin_step(double learning_rate) override { rate_ = static_cast<float>(learning_rate); }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    delta.resize(gradient.data.size());
    const auto beta1 = static_cast<float>(own_.beta1), rest1 = static_cast<float>(1 - own_.beta1);
    const auto beta2 = static_cast<float>(own_.beta2), rest2 = static_cast<float>(1 - own_.beta2);
    const float rate = rate_, decay = decays(parameter) ? decay_ : 0;
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const m = first_[index].data.data();
    float* const d = delta.data();
    for_each_element(gradient.size(), [=](std::int64_t i) {
      const float mean = beta1 * m[i] + rest1 * g[i];
      const float sign = mean > 0 ? 1.0F : mean < 0 ? -1.0F : neutral(mean);
      d[i] = -(rate * (sign + decay * w[i]));
      m[i] = neutral(beta2 * m[i] + rest2 * g[i]);
    });
  }

  std::vector<StateTensor> state(std::size_t index) override {
    if (first_[index].empty()) return {};
    return {{"first", &first_[index]}};
  }

 private:
  LionOptions own_;
  float decay_, rate_ = 0;
  std::vector<Tensor> first_;
};

// A step has the size of the rate: a third to a tenth of Adam's, with as much more decay (section
// 5 of the paper).
constexpr OptimizerName kLionNames[] = {{"lion", 0.0003, 0.1, false, false}};

}  // namespace

extern const OptimizerKind optimizer_lion{
    kLionNames,
    [](const TrainOptions& options, std::span<const Parameter* const> parameters)
        -> std::unique_ptr<Optimizer> { return std::make_unique<Lion>(options, parameters); },
    make_options<LionOptions>};

}  // namespace numemu::net
