// Update rule delayed: gradients are those of the weights n updates ago, W(t+1) = W(t) + delta(t)
// with delta(t) made from the gradient at W(t-n), as in a pipeline that keeps n + 1 versions
// (PipeDream-2BW, Narayanan et al. 2021, n = 1). The graph holds W(t-n), so evaluation and
// checkpoints see that version, also when training ends; the newer ones are the policy's state.
#include <algorithm>

#include "policies/update/parameter_state.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kDelayedState = "recipe/update/delayed";
constexpr double kLongestDelay = 16;

struct DelayedOptions final : PolicyOptions {
  std::int64_t updates = 1;
  std::vector<Option> list() override {
    return {{"updates",
             "how many updates older than the newest weights those are whose gradient "
             "is used",
             &updates, 1, kLongestDelay}};
  }
};

class Delayed final : public Policy {
 public:
  using Policy::Policy;

  void update(const net::Step& step, const net::Update& update) override {
    const DelayedOptions* const options = binding().of<DelayedOptions>(update.parameter);
    if (options == nullptr) return Forwarding::update(step, update);
    net::Elements& value = update.value->data;
    const auto n = static_cast<std::ptrdiff_t>(value.size());
    std::vector<float>& newer = newer_[std::string(update.parameter)];
    if (newer.empty()) {  // before the first update all versions are the first weights
      for (std::int64_t i = 0; i < options->updates; ++i)
        newer.insert(newer.end(), value.begin(), value.end());
    }
    std::copy(newer.end() - n, newer.end(), value.begin());
    Forwarding::update(step, update);
    // The oldest goes to the graph; the newest takes the last place.
    newer.insert(newer.end(), value.begin(), value.end());
    std::copy(newer.begin(), newer.begin() + n, value.begin());
    newer.erase(newer.begin(), newer.begin() + n);
  }

  void save_state(net::NamedState& state) const override {
    Forwarding::save_state(state);
    save_tensors(kDelayedState, newer_, state);
  }
  void load_state(const net::NamedState& state) override {
    newer_ = load_parameters<DelayedOptions>(
        kDelayedState, binding(), state,
        [](const DelayedOptions& options, const net::Tensor& value) {
          return static_cast<std::size_t>(options.updates) * value.data.size();
        });
    Forwarding::load_state(state);
  }

 private:
  StateTensors newer_;  ///< by parameter: the versions after the graph's, oldest first
};

}  // namespace

extern const PolicyKind update_delayed{
    .key = "update.rule",
    .name = "delayed",
    .summary = "gradients are those of the weights of earlier updates; the graph holds those",
    .source = "Narayanan et al., ICML 2021 (PipeDream-2BW)",
    .options = make_options<DelayedOptions>,
    .bind = make_policy<Delayed>};

}  // namespace numemu::policies
