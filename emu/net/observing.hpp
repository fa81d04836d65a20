// Numerics that show what a network asks of them.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// What is shown of the hooks, on the thread that calls them; each may be empty.
struct Observers {
  /// Of products, with operands as the network has them; after it `d` holds the result.
  std::function<void(const Step&, const Product&)> before = {}, after = {};
  /// Of tensors that are kept for backward, as forward made them.
  std::function<void(const Step&, const Kept&, const Tensor&)> kept = {};
  /// Of what an edge hands on, before the numerics change it.
  std::function<void(const Step&, const Edge&, const Tensor&)> edge = {};
  /// Of steps that end and know their samples.
  std::function<void(std::int64_t samples)> stepped = {};
};

/// Answers as `inner` does, without one in float32.
class Observing final : public Forwarding {
 public:
  Observing(Numerics& inner, Observers observers)
      : Forwarding(inner), observers_(std::move(observers)) {}
  explicit Observing(Observers observers) : Observing(plain(), std::move(observers)) {}

  void end_step(const Step& step) override {
    Forwarding::end_step(step);
    if (observers_.stepped && step.samples != nullptr)
      observers_.stepped(static_cast<std::int64_t>(step.samples->size()));
  }
  void product(const Step& step, const Product& p) override {
    if (observers_.before) observers_.before(step, p);
    Forwarding::product(step, p);
    if (observers_.after) observers_.after(step, p);
  }
  void edge(const Step& step, const Edge& edge, Tensor& tensor) override {
    if (observers_.edge) observers_.edge(step, edge, tensor);
    Forwarding::edge(step, edge, tensor);
  }
  Saved save(const Step& step, const Kept& kept, const SharedTensor& tensor) override {
    if (observers_.kept) observers_.kept(step, kept, *tensor);
    return Forwarding::save(step, kept, tensor);
  }

 private:
  /// Float32 numerics have no state.
  static Numerics& plain() {
    static Numerics numerics;
    return numerics;
  }

  Observers observers_;
};

}  // namespace numemu::net
