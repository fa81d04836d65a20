// Objective cross_entropy: softmax cross-entropy, what networks are trained on unless told
// otherwise.
#include "emu/net/ops/losses.hpp"
#include "emu/net/train/objective.hpp"

namespace numemu::net {

extern const Objective objective_cross_entropy{
    "cross_entropy",
    [](const Tensor& logits, const Targets& targets, Tensor* gradient, float scale) {
      return cross_entropy(logits, targets.classes, gradient, scale);
    }};

}  // namespace numemu::net
