// A recipe in training: the numerics of its stages, one after the other.
#pragma once
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "policies/numerics/recipe_numerics.hpp"

namespace numemu::policies {

/// Numerics of a recipe with or without stages, for training. The next stage begins between
/// end_epoch() and the step after it:
/// - an entry with an epoch at that epoch, also where entries before it have not begun, whose
///   patches then apply, too;
/// - an entry with a plateau x once the one before it has begun, after an epoch with a loss of NaN
///   or L - loss < x |L|, where L is the least loss of the epochs before (of the validation where
///   there is one, else of training);
/// - an entry with a turning point x likewise, after the fifth epoch of the stage or a later one
///   whose loss differs from those of the four before by at most x times the mean of the first ten
///   losses of the run (the indicator of Fu et al., NeurIPS 2020).
/// One entry begins at a time. It takes over what carried_state() keeps.
class StagedNumerics : public net::Forwarding {
 public:
  /// Throws Error as RecipeNumerics does, and where a stage cannot train. The graph must outlive
  /// the numerics.
  StagedNumerics(const Recipe&, const net::Graph&, const std::string& where = "recipe");

  /// RecipeNumerics::require_options() of every stage.
  void require_options(const std::string& where, const net::TrainOptions&) const;

  /// See RecipeNumerics; of the stage in force.
  void set_learning_rate(double rate) { numerics_[begun_.size()]->set_learning_rate(rate); }
  FixedRanges learned_ranges(bool best = false) const {
    return numerics_[begun_.size()]->learned_ranges(best);
  }

  /// The stage in an epoch, as Recipe::in_stage() counts them; of later epochs the one in force.
  std::size_t stage(std::int64_t epoch) const;

  void end_epoch(const net::Epoch&) override;
  void save_state(net::NamedState&) const override;
  void load_state(const net::NamedState&) override;

 private:
  using Parts = std::vector<std::unique_ptr<RecipeNumerics>>;

  StagedNumerics(const Recipe&, Parts);
  /// Whether that entry, which has no epoch, begins after an epoch with that loss.
  bool begins(const StageStart&, double loss) const;
  /// The stage after an epoch with that loss, the one in force where none begins.
  std::size_t next(const net::Epoch&, double loss) const;

  std::vector<StageStart> starts_;
  Parts numerics_;                   ///< by stage
  std::vector<std::int64_t> begun_;  ///< first epochs of the entries that have begun
  double best_ = std::numeric_limits<double>::infinity();  ///< least loss of an epoch so far
  // For turning points:
  std::vector<double> first_;   ///< losses of the first epochs
  std::vector<double> recent_;  ///< those of the last epochs of the stage in force
};

/// The part of the state of one stage that the next takes over:
/// - histories of delayed scales and counts;
/// - the loss scale where update.loss_scale is the same;
/// - a layer's mask in force where its weight has the same mask, and its thresholds where its
///   gradients have the same masks;
/// - what a policy keeps (recipe/KEY/RULE/...) where all layers choose the same of that key.
/// All else is dropped. Weights and the optimizer's state are not part of it and always go on.
net::NamedState carried_state(const BoundRecipe& from, const BoundRecipe& to,
                              net::NamedState state);

}  // namespace numemu::policies
