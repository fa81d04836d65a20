// Optimizers by name: from a gradient to what is added to a parameter, in float32.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/op.hpp"
#include "emu/net/train/train.hpp"

namespace numemu::net {

/// An optimizer with the state of every parameter it has seen.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Begins one step of all parameters at that learning rate.
  virtual void begin_step(double learning_rate) = 0;
  /// delta[i], to be added to element i of the parameter. `index` is its place in
  /// Graph::parameters().
  virtual void step(std::size_t index, const Parameter&, const Tensor& gradient,
                    std::vector<float>& delta) = 0;
};

/// Weight decay acts on weights, not on biases: on parameters of more than one axis.
inline bool decays(const Parameter& parameter) { return parameter.value.shape.size() > 1; }

/// The optimizer options.optimizer for a network of that many parameters. Throws Error with the
/// nearest known name.
std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options, std::size_t parameters);
std::vector<std::string> optimizer_names();

std::unique_ptr<Optimizer> make_sgd(const TrainOptions&, std::size_t parameters);
std::unique_ptr<Optimizer> make_adam(const TrainOptions&, std::size_t parameters);

}  // namespace numemu::net
