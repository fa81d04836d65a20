// Optimizers by name: from a gradient to what is added to a parameter, in float32.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/exchange.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/op.hpp"
#include "emu/net/train/options.hpp"
#include "formats/call_text.hpp"
#include "formats/storage/options.hpp"

namespace numemu::net {

class Replicas;

/// One tensor of an optimizer's state, of the shape of its parameter or of one element.
struct StateTensor {
  std::string_view name;  ///< "velocity", "first", "second"
  Tensor* value = nullptr;
};

/// An optimizer with the state of every trained parameter. All of it is in state() and scalars():
/// an optimizer that is given both continues with the same bits.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Begins one step of all parameters at that learning rate.
  virtual void begin_step(double learning_rate) = 0;
  /// delta[i], to be added to element i of the parameter. `index` is its place in
  /// Graph::parameters().
  virtual void step(std::size_t index, const Parameter&, const Tensor& gradient,
                    std::vector<float>& delta) = 0;
  /// The state of parameter `index`, zero before the first step; none for one that is not trained.
  virtual std::vector<StateTensor> state(std::size_t index) = 0;
  /// State that belongs to no parameter.
  virtual std::vector<double*> scalars() { return {}; }
  /// The one that takes the steps of objective number `place` of the options. Its state is part of
  /// this one's.
  virtual Optimizer& of_objective(std::size_t /*place*/) { return *this; }
  /// The workers' own, where the options have local steps; else null.
  virtual Replicas* replicas() { return nullptr; }
};

/// Weight decay acts on weights, not on biases: on parameters of more than one axis.
inline bool decays(const Parameter& parameter) {
  return parameter.value.shape.size() > 1 && !parameter.vector;
}

/// One tensor of zeros per trained parameter, an empty one for any other.
std::vector<Tensor> zero_state(std::span<const Parameter* const> parameters);

/// A name of an optimizer, and the rates that serve most networks.
struct OptimizerName {
  std::string_view name;
  double learning_rate, weight_decay;
  bool betas = true, epsilon = true;  ///< it reads these of TrainOptions
};

/// An optimizer of emu/net/train/optimizers/, where each file FILE.cpp defines `optimizer_FILE`.
struct OptimizerKind {
  std::span<const OptimizerName> names;  ///< of one optimizer, or of its variants
  /// options.optimizer is one of `names`, with its arguments where it has options of its own.
  std::unique_ptr<Optimizer> (*make)(const TrainOptions& options,
                                     std::span<const Parameter* const>);
  /// Those that no other optimizer reads, as arguments of its name: "lion(0.9,0.99)". Null: none.
  std::unique_ptr<OptionSet> (*options)() = nullptr;
};

/// The options of its own that a text like "lion(0.9,beta2=0.99)" gives an optimizer.
template <class Own>
Own own_options(std::string_view optimizer) {
  Own own;
  read_arguments(parse_call(optimizer), own.list(), "optimizer " + std::string(optimizer));
  return own;
}

/// The optimizer options.optimizer for those parameters, with a state of its own for each of
/// options.objectives; those of the second and later ones are named after them
/// ("complement/velocity"). With options.local_steps each worker has its own, and weights, which
/// begin as the parameters are now. Throws Error with the nearest known name.
std::unique_ptr<Optimizer> make_optimizer(const TrainOptions& options,
                                          std::span<const Parameter* const> parameters);
std::vector<std::string> optimizer_names();
/// Of a name or a name with arguments. Throws Error with the nearest known name unless it is one,
/// and for arguments that the optimizer does not take.
const OptimizerName& find_optimizer(std::string_view text);
void require_optimizer(std::string_view text);
/// The text without arguments at the end that are defaults: what runs are known by.
std::string canonical_optimizer(std::string_view text);
/// The options that an optimizer has of its own, at their defaults.
std::unique_ptr<OptionSet> options_of_optimizer(std::string_view name);

/// The optimizers of all workers as one. Its state is each worker's own ("worker3/velocity",
/// "worker3/weights", running statistics too) and the weights of the last exchange ("exchanged"),
/// so that a run continues between two exchanges with the same bits.
class Replicas final : public Optimizer {
 public:
  using Make = std::function<std::unique_ptr<Optimizer>()>;
  Replicas(std::int64_t workers, std::span<const Parameter* const>, const Make&);

  std::int64_t workers() const { return std::ssize(workers_); }
  Optimizer& optimizer(std::int64_t worker) { return *at(worker).optimizer; }

  /// Runs `work` with the worker's weights in the graph, and keeps what it leaves there.
  void with(std::int64_t worker, Graph&, const std::function<void()>& work);
  /// What the worker's trained parameters lost since the last exchange, as a gradient that a step
  /// of rate 1 would take.
  std::vector<Tensor> change(std::int64_t worker) const;
  /// Gives graph and workers the weights of the last exchange less `change`, and the float32 mean
  /// of the running statistics.
  void exchanged(Graph&, const std::vector<Tensor>& change);

  // Steps are taken by optimizer(worker).
  void begin_step(double) override {}
  void step(std::size_t, const Parameter&, const Tensor&, std::vector<float>&) override {}
  std::vector<StateTensor> state(std::size_t index) override;
  std::vector<double*> scalars() override;
  Replicas* replicas() override { return this; }

 private:
  struct Worker {
    std::unique_ptr<Optimizer> optimizer;
    std::vector<Tensor> weights;
  };
  Worker& at(std::int64_t worker) { return workers_.at(static_cast<std::size_t>(worker)); }

  std::vector<Worker> workers_;
  std::vector<Tensor> exchanged_;
  std::vector<bool> trained_;
  std::set<std::string> names_;  ///< that StateTensor refers to
};

}  // namespace numemu::net
