// Scales that training learns: one of an activation, one of a weight or of each of its channels.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/numerics/sets_scales.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/recipe/role_quantizer.hpp"

namespace numemu::policies {

/// The ends of what codes mean, in units of the scale: low <= 0 < high.
struct LevelRange {
  double low = 0, high = 0;
};

/// How learned scales move.
struct LearnOptions : PolicyOptions {
  double rate = 1;
  std::string method = "adam";
};
/// The options that every rule has.
Option rate_option(LearnOptions&);
Option method_option(LearnOptions&);

/// Scales begin as the recipe's rule chooses them for the first batch and the first weights (or as
/// `ranges` fix them) and move with the network. An element x has the quantized value s q, where q
/// is what its code means. The gradient of x passes where low <= x / s <= high and is 0 elsewhere;
/// that of s is the sum over the elements of theirs times slope(), divided by the loss scale,
/// times gradient_factor(). Zero points stay.
///
/// A scale s is moved by its parameter p = s unit(): `sgd` with momentum 0.9, or `adam` (0.9,
/// 0.999) in parts of p, p (1 - rate m / sqrt(v)). Activations that network inputs are have no
/// gradient, so their scales stay. The gradient of a step is the mean over its parts (micro-batches
/// of all workers); all of them read the same scales, those of the first part's batch in the first
/// step.
class LearnedRange : public Policy, public LearnsScales {
 public:
  /// Throws Error where no operand that learns has a static scale of the tensor or of channels, and
  /// where the recipe contradicts.
  LearnedRange(Binding, net::Numerics& inner, std::string prefix,
               bool (*learns)(const LearnOptions&, RolePart));

  void begin_step(const net::Step&) override;
  void product(const net::Step&, const net::Product&) override;
  float loss_scale(const net::Step&) override;
  double penalty(const net::Step&, std::string_view parameter, const net::Tensor& value,
                 net::Tensor& gradient) override;
  bool accept_gradients(const net::Step&) override;
  net::Participation participation(const net::Step&, std::int64_t worker,
                                   std::int64_t micro_batches) override;
  void end_epoch(const net::Epoch&) override;
  void end_step(const net::Step&) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;
  void require_options(const std::string& where, const net::TrainOptions&) const override;

  void give_scales_to(UseScales use) override { use_ = std::move(use); }
  void set_learning_rate(double rate) override { rate_ = rate; }
  FixedRanges learned(bool best) const override;

 protected:
  /// The derivative of s q along s for an element of `value` = x / s and `level` = q.
  virtual double slope(double value, double level, const LevelRange&) const = 0;
  /// Of the gradient of a scale that so many elements share, those of one sample where they are an
  /// activation's.
  virtual double gradient_factor(std::int64_t /*elements*/, const LevelRange&) const { return 1; }
  virtual double unit(const LevelRange&) const { return 1; }
  /// Added to the gradient of a parameter p: decay() p.
  virtual double decay(const LearnOptions&) const { return 0; }

 private:
  struct Operand {
    RoleQuantizer quantizer;
    RolePart part = RolePart::weight;
    std::vector<float> scales = {}, first = {};  ///< empty before the first step
    std::int32_t zero_point = 0;
    std::vector<double> gradient = {};  ///< of the step that is running
    std::int64_t elements = 0;          ///< that share a scale
    std::vector<float> momentum = {}, square = {};
    std::int64_t steps = 0;
    std::vector<float> best = {};  ///< those of the epoch with the lowest validation loss
  };
  /// What backward needs of the elements of an activation.
  struct Slopes {
    std::vector<float> of;
    std::vector<std::uint8_t> passes;
  };
  struct Layer {
    std::optional<Operand> weight, activation;
    /// Of the products of the step that is running, by part.
    std::map<std::int64_t, std::vector<Slopes>> waiting;
  };

  const LearnOptions& options(std::string_view layer) const;
  LevelRange levels_of(const Operand&) const;
  void begin(const std::string& layer, Operand&, const net::Tensor&);
  void use(const std::string& layer, const Operand&) const;
  Slopes slopes_of(const Operand&, const float* x, std::int64_t n, float scale) const;
  void take_gradient(Layer&, const net::Step&, const net::Product&);
  void move(const std::string& layer, Operand&);
  template <class Visit>
  void for_each_operand(const Visit& visit);

  std::string prefix_;
  std::map<std::string, Layer, std::less<>> layers_;
  UseScales use_;
  double rate_ = 0;
  float loss_scale_ = 1;
  bool accepted_ = true;
  std::int64_t parts_ = 0;  ///< of the step that is running
  std::optional<double> best_loss_;
};

}  // namespace numemu::policies
