// Numerics that skip what predictors predict to be zero, on top of any other numerics.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emu/net/numerics.hpp"
#include "policies/zap/bookkeeping.hpp"
#include "policies/zap/zap_network.hpp"

namespace numemu::policies {

/// Answers as `inner` does, and sets each activation of a layer of the ZapNetwork to zero that its
/// predictor says is zero: after the result's own rounding (vector_result), before its storage
/// format (edge). In training the gradient does not pass where it did, for ReLU looks at its
/// output. Predictors compute in float32 and do not change.
class ZapNumerics final : public net::Numerics {
 public:
  /// Both must outlive it.
  ZapNumerics(const ZapNetwork&, net::Numerics& inner);

  const ZapNetwork& network() const { return network_; }

  /// Whether inference steps are counted (each batch once per run).
  void count(bool on) { counting_ = on; }
  /// Of everything counted so far, per layer of the network: the same bits for any number of
  /// threads, as long as no two batches begin with one sample.
  std::vector<ZapTally> tallies() const;
  void forget() { counted_.assign(network_.layers.size(), {}); }

  void begin_step(const net::Step&) override;
  void end_step(const net::Step& step) override { inner_.end_step(step); }
  void product(const net::Product& product) override { inner_.product(product); }
  void edge(const net::Edge&, net::Tensor&) override;
  net::Saved save(std::string_view layer, net::Tensor tensor) override {
    return inner_.save(layer, std::move(tensor));
  }
  net::Tensor restore(std::string_view layer, net::Saved saved) override {
    return inner_.restore(layer, std::move(saved));
  }
  void vector_result(std::string_view layer, std::string_view op, net::Tensor& result) override {
    inner_.vector_result(layer, op, result);
  }
  net::NormRule norm(std::string_view layer) override { return inner_.norm(layer); }
  double penalty(std::string_view parameter, const net::Tensor& value,
                 net::Tensor& gradient) override {
    return inner_.penalty(parameter, value, gradient);
  }
  void update(const net::Update& update) override { inner_.update(update); }
  void optimizer_state(std::string_view parameter, std::string_view name,
                       net::Tensor& state) override {
    inner_.optimizer_state(parameter, name, state);
  }
  float loss_scale() override { return inner_.loss_scale(); }
  bool accept_gradients(const std::vector<net::Tensor>& gradients) override {
    return inner_.accept_gradients(gradients);
  }
  std::vector<net::Tensor> exchange(std::vector<std::vector<net::Tensor>> gradients) override {
    return inner_.exchange(std::move(gradients));
  }
  void save_state(std::vector<std::pair<std::string, std::string>>& state) const override {
    inner_.save_state(state);
  }
  void load_state(const std::vector<std::pair<std::string, std::string>>& state) override {
    inner_.load_state(state);
  }

 private:
  const ZapNetwork& network_;
  net::Numerics& inner_;
  bool counting_ = false;
  std::mutex mutex_;
  // By layer and first sample of the batch.
  std::vector<std::map<std::int64_t, ZapTally>> counted_;
};

}  // namespace numemu::policies
