// The factor on the loss before backward: none, fixed, or halved and doubled as gradients overflow
// (Micikevicius et al., ICLR 2018). With a dynamic factor a step with a gradient that is not finite
// is skipped and halves it; `growth_interval` steps without one double it.
#include <algorithm>
#include <bit>
#include <utility>

#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"
#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kState = "recipe/loss_scale";
constexpr double kSmallest = 0x1p-60, kLargest = 0x1p60;  // between these the factor moves

bool finite(const net::Tensor& x) {
  std::uint32_t largest = 0;
#pragma omp parallel for simd reduction(max : largest) if (x.size() > (std::int64_t{1} << 16))
  for (std::int64_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x.data[i]) & 0x7fffffffu);
  return largest < 0x7f800000u;
}

class LossScaler final : public Policy, public LeavesWeights {
 public:
  LossScaler(Binding given, net::Numerics& inner)
      : Policy(std::move(given), inner),
        rule_(binding().recipe->update().loss_scale),
        value_(rule_.value) {}

  float loss_scale(const net::Step&) override {
    return rule_.kind == LossScale::Kind::none ? 1.0f : static_cast<float>(value_);
  }

  void worker_gradients(const net::Step& step, const std::vector<net::Tensor>& gradients) override {
    Forwarding::worker_gradients(step, gradients);
    if (rule_.kind != LossScale::Kind::dynamic || overflow_) return;
    overflow_ = !std::all_of(gradients.begin(), gradients.end(), finite);
  }

  bool accept_gradients(const net::Step& step) override {
    const bool overflow = std::exchange(overflow_, false);
    if (!Forwarding::accept_gradients(step)) return false;
    if (rule_.kind != LossScale::Kind::dynamic) return true;
    if (overflow) {
      value_ = std::max(kSmallest, value_ / 2);
      good_ = 0;
      ++skipped_;
      return false;
    }
    if (++good_ == rule_.growth_interval) {
      value_ = std::min(kLargest, value_ * 2);
      good_ = 0;
    }
    return true;
  }

  void save_state(net::NamedState& state) const override {
    state.emplace_back(kState, to_bytes({bits_of(value_), static_cast<std::uint64_t>(good_),
                                         static_cast<std::uint64_t>(skipped_)}));
    Forwarding::save_state(state);
  }

  void load_state(const net::NamedState& state) override {
    const auto found = std::find_if(state.begin(), state.end(),
                                    [](const auto& entry) { return entry.first == kState; });
    if (found != state.end()) {
      const std::vector<std::uint64_t> numbers = from_bytes(kState, found->second);
      if (numbers.size() != 3) {
        throw Error(std::string("state ") + kState + ": expected 3 numbers, found " +
                    std::to_string(numbers.size()));
      }
      value_ = double_of(numbers[0]);
      good_ = static_cast<std::int64_t>(numbers[1]);
      skipped_ = static_cast<std::int64_t>(numbers[2]);
    }
    Forwarding::load_state(state);
  }

 private:
  LossScale rule_;
  double value_;
  std::int64_t good_ = 0;     ///< steps since the factor last moved
  std::int64_t skipped_ = 0;  ///< steps
  bool overflow_ = false;     ///< of a worker's gradients in this step
};

}  // namespace

extern const PolicyKind update_loss_scale{
    .key = "update.loss_scale",
    .name = "",
    .summary = "a factor on the loss, fixed or halved and doubled as gradients overflow",
    .source = "Micikevicius et al., ICLR 2018 (arXiv 1710.03740)",
    .bind = make_policy<LossScaler>,
    // Every run: its state has the factor, 1 without scaling.
    .chosen_by = [](const Recipe&, const LayerRecipe&) { return true; }};

}  // namespace numemu::policies
