// Numerics of inference that pass every product to an observer.
#pragma once
#include <functional>
#include <utility>

#include "emu/net/numerics.hpp"

namespace numemu::experiments {

/// Answers as `inner` does and shows every product once it is computed; `heard` is called on the
/// thread that computed it. `stepped` is told the samples of each step that ends.
class Listening : public net::Numerics {
 public:
  using Heard = std::function<void(const net::Product&)>;
  using Stepped = std::function<void(std::int64_t samples)>;
  Listening(net::Numerics& inner, Heard heard, Stepped stepped = {})
      : inner_(inner), heard_(std::move(heard)), stepped_(std::move(stepped)) {}

  void begin_step(const net::Step& step) override { inner_.begin_step(step); }
  void end_step(const net::Step& step) override {
    inner_.end_step(step);
    if (stepped_ && step.samples != nullptr)
      stepped_(static_cast<std::int64_t>(step.samples->size()));
  }
  void product(const net::Product& p) override {
    inner_.product(p);
    if (heard_) heard_(p);
  }
  void edge(const net::Edge& edge, net::Tensor& x) override { inner_.edge(edge, x); }
  void vector_result(std::string_view layer, std::string_view op, net::Tensor& x) override {
    inner_.vector_result(layer, op, x);
  }
  net::NormRule norm(std::string_view layer) override { return inner_.norm(layer); }

 private:
  net::Numerics& inner_;
  Heard heard_;
  Stepped stepped_;
};

}  // namespace numemu::experiments
