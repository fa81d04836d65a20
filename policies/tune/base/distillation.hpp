// Training of chosen parameters by Adam, so that the class probabilities of the tuned network come
// near those of float32: what the steps `bias` and `distill` share. The divergence of one network's
// class probabilities from another's, and its gradient.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/numerics.hpp"
#include "emu/net/tensor.hpp"
#include "emu/net/train/optimizer.hpp"
#include "policies/policy.hpp"
#include "policies/tune/base/tune_step.hpp"
#include "policies/tune/base/tuning.hpp"

namespace numemu::policies {

// Gradients through a quantized network, for steps that train it.

/// What the numerics below forward to.
struct OwnedNumerics {
  std::unique_ptr<RecipeNumerics> owned;
};

/// Numerics of the tuned network whose forward pass is that of eval, bit for bit (steps of
/// inference: CalibrationStep), where ranges fix all static scales; others are those of the
/// reference, which do not move with the weights. The backward pass is in float32: a gradient
/// passes a quantizer unchanged, but is zero where the activation lies beyond its fixed range.
/// Products of backward read rounded weights and unrounded activations. One thread at a time; made
/// anew after ranges change.
class StraightThroughNumerics final : private OwnedNumerics, public net::Forwarding {
 public:
  /// Without `weights` the gradients of weights stay as they are allocated: nobody reads them.
  explicit StraightThroughNumerics(const Tuning&, bool weights = true);

  /// After weights of the tuned network changed: they are rounded anew.
  void weights_changed(const Tuning&);

  void begin_step(const net::Step&) override;
  void product(const net::Step&, const net::Product&) override;
  /// Contexts stay as they are, whatever the role `saved` says.
  net::Saved save(const net::Step&, const net::Kept&, const net::SharedTensor& tensor) override {
    return {tensor};
  }
  net::SharedTensor restore(const net::Step&, const net::Kept&, net::Saved saved) override {
    return saved.tensor;
  }

 private:
  /// The weight of a layer as its unit reads it; as it is where that is not rounded whole.
  const net::Tensor& rounded(std::string_view layer, const net::Tensor& weight);

  std::set<std::string, std::less<>> unread_;             ///< layers whose weights get no gradient
  std::map<std::string, ValueRange, std::less<>> reach_;  ///< of activations, by layer
  std::map<std::string, net::Tensor, std::less<>> rounded_;
  /// Where forward read elements beyond: of each product that backward has not met yet.
  std::map<std::string, std::vector<std::vector<bool>>, std::less<>> beyond_;
};

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
