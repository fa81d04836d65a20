// Gradient smoothing: the loss of steps with several copies is scaled, so that their gradients have
// the norm of one copy's (Mix & Match, Hoffer et al. 2019).
#pragma once
#include <cstdint>
#include <map>

#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/train/image_sizes.hpp"
#include "emu/net/train/options.hpp"
#include "emu/net/train/step.hpp"

namespace numemu::net {

/// What a run keeps of gradient smoothing, in the state of its numerics, which it passes on.
class SizeSmoothing final : public Forwarding {
 public:
  SizeSmoothing(Numerics& inner, const TrainOptions& options)
      : Forwarding(inner), options_(&options) {}

  /// The weight of the step's loss: per image size a mean of (sum_j |g_j| / copies) / |g|, g_j the
  /// gradient of copy j alone and g that of all, which keeps 0.9 of what it was at each
  /// measurement. A size is measured in its first step and in each whose number is a multiple of
  /// sizes.smoothing: in float32, whatever the recipe is, with the first objective and before
  /// penalties. 1 without smoothing, for one copy, and where a norm is 0 or not finite.
  double weight(const Graph&, const StepInput&, const PlannedStep&);

  void save_state(NamedState&) const override;
  void load_state(const NamedState&) override;

 private:
  const TrainOptions* options_;
  std::map<std::int64_t, double> weights_;  ///< by image size
};

/// |g| of all rows, and the mean over the copies of |g_j|; rows are those of a batch with `copies`
/// neighbouring rows of each sample.
struct CopyNorms {
  double all = 0, one = 0;
};
CopyNorms copy_norms(const Graph&, const StepInput&, std::int64_t copies, const TrainOptions&);

}  // namespace numemu::net
