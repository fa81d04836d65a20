// Numerics that answer every hook as another does: what overrides single hooks derives from it.
#pragma once
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu::net {

/// Passes every hook on to `inner`, which must outlive it. A hook that is overridden calls the one
/// of this class where the inner numerics should see the call.
class Forwarding : public Numerics {
 public:
  explicit Forwarding(Numerics& inner) : inner_(&inner) {}

  void begin_step(const Step& step) override { inner_->begin_step(step); }
  void end_step(const Step& step) override { inner_->end_step(step); }
  void end_epoch(const Epoch& epoch) override { inner_->end_epoch(epoch); }
  void product(const Step& step, const Product& product) override {
    inner_->product(step, product);
  }
  SharedTensor table(const Step& step, std::string_view layer, const Tensor& parameter) override {
    return inner_->table(step, layer, parameter);
  }
  void edge(const Step& step, const Edge& edge, Tensor& tensor) override {
    inner_->edge(step, edge, tensor);
  }
  Saved save(const Step& step, const Kept& kept, const SharedTensor& tensor) override {
    return inner_->save(step, kept, tensor);
  }
  SharedTensor restore(const Step& step, const Kept& kept, Saved saved) override {
    return inner_->restore(step, kept, std::move(saved));
  }
  void vector_result(const Step& step, std::string_view layer, std::string_view op,
                     Tensor& result) override {
    inner_->vector_result(step, layer, op, result);
  }
  NormRule norm(const Step& step, std::string_view layer) override {
    return inner_->norm(step, layer);
  }
  double penalty(const Step& step, std::string_view parameter, const Tensor& value,
                 Tensor& gradient) override {
    return inner_->penalty(step, parameter, value, gradient);
  }
  void update(const Step& step, const Update& update) override { inner_->update(step, update); }
  void optimizer_state(const Step& step, std::string_view parameter, std::string_view name,
                       Tensor& state) override {
    inner_->optimizer_state(step, parameter, name, state);
  }
  float loss_scale(const Step& step) override { return inner_->loss_scale(step); }
  bool accept_gradients(const Step& step, const std::vector<Tensor>& gradients) override {
    return inner_->accept_gradients(step, gradients);
  }
  std::vector<Tensor> exchange(const Step& step, std::vector<WorkerGradient> gradients) override {
    return inner_->exchange(step, std::move(gradients));
  }
  void save_state(NamedState& state) const override { inner_->save_state(state); }
  void load_state(const NamedState& state) override { inner_->load_state(state); }

 protected:
  Numerics& inner() const { return *inner_; }
  /// From now on to those numerics.
  void forward_to(Numerics& inner) { inner_ = &inner; }

 private:
  Numerics* inner_;
};

}  // namespace numemu::net
