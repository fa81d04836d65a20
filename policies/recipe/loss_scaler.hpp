// The factor on the loss before backward: none, fixed, or halved and doubled as gradients overflow.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "policies/recipe/recipe.hpp"

namespace numemu::policies {

/// Dynamic loss scaling (Micikevicius et al., Mixed Precision Training, 2018): a step with a
/// gradient that is not finite is skipped and halves the factor; `growth_interval` steps without
/// one double it. A fixed factor skips nothing.
class LossScaler {
 public:
  /// Between these the factor moves.
  static constexpr double kSmallest = 0x1p-60, kLargest = 0x1p60;

  explicit LossScaler(const LossScale& rule) : rule_(rule), value_(rule.value) {}

  float value() const;
  /// Whether the step may be taken; moves a dynamic factor.
  bool accept(const std::vector<net::Tensor>& gradients);
  std::int64_t skipped() const { return skipped_; }

  std::string state() const;
  void load(const std::string& name, const std::string& state);

 private:
  LossScale rule_;
  double value_;
  std::int64_t good_ = 0;  ///< steps since the factor last moved
  std::int64_t skipped_ = 0;
};

}  // namespace numemu::policies
