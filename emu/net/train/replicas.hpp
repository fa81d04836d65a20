// Workers with weights and optimizer states of their own (local steps): replicas that take turns in
// one graph.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "emu/net/exchange.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/train/optimizer.hpp"

namespace numemu::net {

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
