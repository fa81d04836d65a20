// NovoGrad (Ginsburg et al. 2019, arXiv 1905.11286): momentum of gradients over the norm of their
// own layer, whose second moment is one number per tensor.
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/stats/mean.hpp"

namespace numemu::net {
namespace {

struct NovoGradOptions final : OptionSet {
  double beta1 = 0.95, beta2 = 0.98, epsilon = 1e-8;
  std::vector<Option> list() override {
    return {{"beta1", "decay of the momentum", &beta1, 0, 1},
            {"beta2", "decay of the squared norm", &beta2, 0, 1},
            {"epsilon", "added to the norm", &epsilon, 0, 1}};
  }
};

class NovoGrad final : public Optimizer {
 public:
  NovoGrad(const TrainOptions& options, std::span<const Parameter* const> parameters)
      : own_(own_options<NovoGradOptions>(options.optimizer)),
        decay_(static_cast<float>(options.weight_decay)),
        first_(zero_state(parameters)) {
    for (const Tensor& first : first_)
      second_.push_back(first.empty() ? Tensor() : Tensor(Shape{1}));
  }

  void begin_step(double learning_rate) override { rate_ = static_cast<float>(learning_rate); }

  void step(std::size_t index, const Parameter& parameter, const Tensor& gradient,
            std::vector<float>& delta) override {
    delta.resize(gradient.data.size());
    const float* const g = gradient.data.data();
    const double square = stats::sum_of_squares(gradient.size(), g);
    float& v = second_[index].data[0];
    // The first square begins the mean, so that it has no bias.
    v = neutral(
        static_cast<float>(v == 0 ? square : own_.beta2 * double{v} + (1 - own_.beta2) * square));
    const float norm = std::sqrt(v) + static_cast<float>(own_.epsilon);
    const auto beta1 = static_cast<float>(own_.beta1);
    const float rate = rate_, decay = decays(parameter) ? decay_ : 0;
    const float* const w = parameter.value.data.data();
    float* const m = first_[index].data.data();
    float* const d = delta.data();
    for_each_element(gradient.size(), [=](std::int64_t i) {
      // A norm of 0 has no gradient.
      const float direction = norm == 0 ? 0 : g[i] / norm;
      m[i] = neutral(beta1 * m[i] + (direction + decay * w[i]));
      d[i] = -(rate * m[i]);
    });
  }

  std::vector<StateTensor> state(std::size_t index) override {
    if (first_[index].empty()) return {};
    return {{"first", &first_[index]}, {"second", &second_[index]}};
  }

 private:
  NovoGradOptions own_;
  float decay_, rate_ = 0;
  std::vector<Tensor> first_, second_;
};

// The best of 0.01, 0.03 and 0.1 after an epoch of mlp on glyphs, batch 64.
constexpr OptimizerName kNovoGradNames[] = {{"novograd", 0.03, 0.001, false, false}};

}  // namespace

extern const OptimizerKind optimizer_novograd{
    kNovoGradNames,
    [](const TrainOptions& options, std::span<const Parameter* const> parameters)
        -> std::unique_ptr<Optimizer> { return std::make_unique<NovoGrad>(options, parameters); },
    make_options<NovoGradOptions>};

}  // namespace numemu::net
