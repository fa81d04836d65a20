// AdaMax (Kingma and Ba 2015, section 7.1), and its form by shifts for binarized networks (Hubara
// et al. 2016, algorithm 4), whose factors on the first moment are powers of two.
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {
namespace {

constexpr std::string_view kShift = "shift-adamax";

class AdaMax final : public Optimizer {
 public:
  AdaMax(const TrainOptions& options, std::span<const Parameter* const> parameters)
      : shift_(options.optimizer == kShift),
        beta1_(shift_ ? 1 - 0x1p-3 : options.beta1),
        beta2_(shift_ ? 1 - 0x1p-10 : options.beta2),
        weight_decay_(options.weight_decay),
        first_(zero_state(parameters)),
        largest_(zero_state(parameters)) {}

  void begin_step(double learning_rate) override {
    rate_ = learning_rate;
    power_ *= beta1_;
  }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    delta.resize(gradient.data.size());
    const bool shift = shift_;
    const float beta1 = static_cast<float>(beta1_), rest1 = static_cast<float>(1 - beta1_);
    const float beta2 = static_cast<float>(beta2_);
    const double corrected = rate_ / (1 - power_);
    const auto rate = static_cast<float>(shift ? core::power_of_two(corrected) : corrected);
    const auto decay = static_cast<float>(decays(parameter) ? rate_ * weight_decay_ : 0);
    const float* const w = parameter.value.data.data();
    const float* const g = gradient.data.data();
    float* const m = first_[index].data.data();
    float* const v = largest_[index].data.data();
    float* const d = delta.data();
    for_each_element(gradient.size(), [=](std::int64_t i) {
      m[i] = neutral(beta1 * m[i] + rest1 * g[i]);
      const float size = std::fabs(g[i]), held = beta2 * v[i];
      v[i] = size > held || size != size ? size : held;
      // m is 0 where v is: no gradient so far. Powers of two: both products are shifts.
      const double inverse = v[i] == 0 ? 0 : 1 / double{v[i]};
      const double factor = rate * (shift ? core::power_of_two(inverse) : inverse);
      d[i] = neutral(-(static_cast<float>(factor * m[i]) + decay * w[i]));
    });
  }

  std::vector<StateTensor> state(std::size_t index) override {
    if (first_[index].empty()) return {};
    return {{"first", &first_[index]}, {"largest", &largest_[index]}};
  }
  std::vector<double*> scalars() override { return {&power_}; }

 private:
  bool shift_;
  double beta1_, beta2_, weight_decay_, rate_ = 0, power_ = 1;  // beta1^t
  std::vector<Tensor> first_, largest_;
};

constexpr OptimizerName kAdamaxNames[] = {{"adamax", 0.002, 0.01, true, false},
                                          {kShift, 0x1p-10, 1e-4, false, false}};

}  // namespace

extern const OptimizerKind optimizer_adamax{
    kAdamaxNames,
    [](const TrainOptions& options, std::span<const Parameter* const> parameters)
        -> std::unique_ptr<Optimizer> { return std::make_unique<AdaMax>(options, parameters); }};

}  // namespace numemu::net
