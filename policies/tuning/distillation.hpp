// Training of chosen parameters by Adam, so that the class probabilities of the tuned network come
// near those of float32: what the steps `bias` and `distill` share. The divergence of one network's
// class probabilities from another's, and its gradient.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"
#include "emu/net/train/optimizer.hpp"
#include "policies/policy.hpp"
#include "policies/tuning/tune_step.hpp"

namespace numemu::policies {

/// The mean over the rows of KL(softmax(f) || softmax(q)) = sum_c f_c (ln f_c - ln q_c), the last
/// axis being the classes. With `gradient`: that of the mean along q's logits, (softmax(q) -
/// softmax(f)) / rows. Throws Error where shapes differ and for a row without a finite largest
/// logit.
double kl_divergence(const net::Tensor& f, const net::Tensor& q, net::Tensor* gradient = nullptr);

struct DistillOptions : PolicyOptions {
  std::int64_t epochs = 10;  ///< passes over the calibration samples
  double rate = 1e-3;        ///< of Adam
  bool weights = false;  ///< all parameters of layers that multiply by a weight, not biases alone
  bool falls = false;    ///< the rate falls to 0 along half a cosine; batches are shuffled
  std::vector<Option> list() override;
};

/// Adam on mean KL(softmax(float32) || softmax(quantized)), in batches of 32; a part is an epoch.
/// Gradients pass quantizers unchanged, or are zero where an activation lies beyond its range.
class Distillation : public TuneStep {
 public:
  /// `name` is the step's, in messages. The options outlive the step.
  Distillation(std::string_view name, const DistillOptions& options)
      : name_(name), options_(options) {}

  /// Throws Error for batch normalisation and dropout, which training computes otherwise, and for
  /// a network without a layer that has what is trained: a bias, or with `weights` a weight.
  std::int64_t begin(const Tuning&) override;
  void run(Tuning&, std::int64_t part, const TuneProgress&) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;
  std::string summary() const override;

 private:
  bool is_trained(const std::string& parameter) const;
  double rate_at(std::int64_t batch, std::int64_t batches) const;
  /// use(name, values) of every tensor of the optimizer.
  template <class Use>
  void for_each_state(const Use& use) const;

  std::string name_;
  const DistillOptions& options_;
  std::vector<std::string> trained_;  ///< names of the parameters
  std::size_t layers_ = 0, places_ = 0;
  std::unique_ptr<net::Optimizer> optimizer_;
  double loss_ = 0;
};

}  // namespace numemu::policies
