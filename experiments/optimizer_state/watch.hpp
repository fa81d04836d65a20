// What rounding does to updates and to second moments during training, and what float32 numbers
// predict of it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/net/forwarding.hpp"
#include "emu/net/train/options.hpp"
#include "experiments/optimizer_state/methods.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::optimizer_state {

/// Probabilities that an update d leaves a bfloat16 weight w as it is: to nearest it is 1 where
/// |d| < ulp(w) / 2, stochastically 1 - |d| / ulp(w) where that is above 0.
struct Lost {
  double nearest = 0, stochastic = 0;
};
Lost lost_update(float w, float d);

/// Numerics that measure. In float32 they predict, too.
class Watch final : public net::Forwarding {
 public:
  /// Updates are counted in the last of every `every` steps, zeros after `zeros_after` steps.
  /// `predicted`: methods with block formats of one size, whose second moments are predicted.
  Watch(net::Numerics& inner, const net::TrainOptions&, std::int64_t zeros_after,
        std::int64_t every, std::vector<Method> predicted);

  void update(const net::Step&, const net::Update&) override;
  void optimizer_state(const net::Step&, std::string_view parameter, std::string_view name,
                       net::Tensor&) override;

  /// {"lost", "lost_nearest", "lost_stochastic", "zeros", "largest", "zeros_of": {METHOD: share}}:
  /// shares of the updates that are not 0; of the second moments whose element had a gradient; and
  /// the largest update over the largest rate.
  Json json() const;

 private:
  /// The elements of a block of a parameter.
  using OfBlock = std::function<void(std::size_t first, std::size_t end)>;
  void for_each_block(const net::Tensor&, const OfBlock&) const;
  void predict(std::string_view parameter, const net::Tensor& second);

  std::int64_t zeros_after_, every_;
  double rate_, rest_;  ///< rest: 1 - beta2
  std::vector<Method> predicted_;
  std::map<std::string, std::vector<float>, std::less<>> peaks_;    ///< largest squared gradient
  std::map<std::string, std::vector<float>, std::less<>> highest_;  ///< of a block, at its first
  double updates_ = 0, lost_ = 0, nearest_ = 0, stochastic_ = 0, largest_ = 0;
  double seconds_ = 0, zeros_ = 0;
  std::vector<double> zeros_of_;
};

}  // namespace numemu::experiments::optimizer_state
