// Numerics of inference that pass every product to an observer.
#pragma once
#include <functional>
#include <utility>

#include "emu/net/numerics.hpp"

namespace numemu::experiments {

/// Answers as `inner` does and shows every product once it is computed; `heard` is called on the
/// thread that computed it. `stepped` is told the samples of each step that ends.
class Listening : public net::Forwarding {
 public:
  using Heard = std::function<void(const net::Product&)>;
  using Stepped = std::function<void(std::int64_t samples)>;
  Listening(net::Numerics& inner, Heard heard, Stepped stepped = {})
      : Forwarding(inner), heard_(std::move(heard)), stepped_(std::move(stepped)) {}

  void end_step(const net::Step& step) override {
    Forwarding::end_step(step);
    if (stepped_ && step.samples != nullptr)
      stepped_(static_cast<std::int64_t>(step.samples->size()));
  }
  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(step, p);
    if (heard_) heard_(p);
  }

 private:
  Heard heard_;
  Stepped stepped_;
};

}  // namespace numemu::experiments
