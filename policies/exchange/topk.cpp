// Exchange topk: each worker sends the largest elements of its gradients and keeps the rest for
// later steps (Aji and Heafield, EMNLP 2017; error feedback: Stich et al., NeurIPS 2018).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "emu/net/numerics.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "policies/policy.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {
namespace {

constexpr const char* kState = "recipe/exchange/topk";

struct Options final : PolicyOptions {
  double share = 0.01;
  std::vector<Option> list() override {
    return {{"share", "part of each tensor's elements that a worker sends, at least one element",
             &share, 1e-6, 1}};
  }
};

/// The places of the `count` elements of largest magnitude; the lower of two equal ones comes
/// first. NaN counts as the largest, so that no residual keeps one.
std::vector<std::size_t> largest(const std::vector<float>& x, std::size_t count) {
  std::vector<std::size_t> places(x.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (count == x.size()) return places;
  const auto magnitude = [&](std::size_t i) {
    return std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu;
  };
  const auto cut = places.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(places.begin(), cut, places.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(a) != magnitude(b) ? magnitude(a) > magnitude(b) : a < b;
  });
  places.erase(cut, places.end());
  return places;
}

class TopK final : public Policy {
 public:
  using Policy::Policy;

  /// The inner exchange gets one dense gradient per worker. Tensors of one axis are sent whole.
  std::vector<net::Tensor> exchange(const net::Step& step,
                                    std::vector<net::WorkerGradient> gradients) override {
    const std::vector<const net::Parameter*> parameters = binding().recipe.graph().parameters();
    // A worker adds up its micro-batches before it sends.
    std::vector<net::WorkerGradient> sent = net::worker_means(std::move(gradients));
    for (net::WorkerGradient& own : sent) {
      std::vector<net::Tensor>& mean = own.parameters;
      if (mean.size() != parameters.size()) {
        throw Error(fmt::format("exchange: worker {} sent {} gradients, the graph has {}",
                                own.worker, mean.size(), parameters.size()));
      }
      for (std::size_t p = 0; p < mean.size(); ++p) {
        const Options* const options = binding().of<Options>(parameters[p]->name);
        if (options != nullptr && mean[p].shape.size() > 1 && !mean[p].empty())
          compress(options->share, name_of(own.worker, parameters[p]->name), mean[p]);
      }
    }
    return Forwarding::exchange(step, std::move(sent));
  }

  void save_state(net::NamedState& state) const override {
    Forwarding::save_state(state);
    save_tensors(kState, residuals_, state);
  }
  void load_state(const net::NamedState& state) override {
    Forwarding::load_state(state);
    load_tensors(kState, state, residuals_);
  }

 private:
  static std::string name_of(std::int64_t worker, const std::string& parameter) {
    return fmt::format("worker{}/{}", worker, parameter);
  }

  /// Leaves in `gradient` what the worker sends of it and of its residual, and the rest in the
  /// residual.
  void compress(double share, const std::string& name, net::Tensor& gradient) {
    std::vector<float>& residual = residuals_[name];
    if (residual.empty()) residual.resize(gradient.data.size());
    if (residual.size() != gradient.data.size()) {
      throw Error(fmt::format("state {}/{}: expected {} elements, found {}", kState, name,
                              gradient.size(), residual.size()));
    }
    for (std::size_t i = 0; i < residual.size(); ++i) {
      // Without a residual -0 stays -0.
      const float g = gradient.data[i];
      residual[i] = residual[i] == 0 ? g : net::neutral(residual[i] + g);
    }
    const auto count = static_cast<std::size_t>(
        std::max(1.0, std::round(share * static_cast<double>(residual.size()))));
    std::fill(gradient.data.begin(), gradient.data.end(), 0.0f);
    for (const std::size_t i : largest(residual, count))
      gradient.data[i] = std::exchange(residual[i], 0.0f);
  }

  StateTensors residuals_;  ///< by worker and parameter
};

}  // namespace

extern const PolicyKind exchange_topk;
const PolicyKind exchange_topk{
    .key = "exchange",
    .name = "topk",
    .summary = "each worker sends its largest elements and keeps the rest for later steps",
    .source = "Aji and Heafield, EMNLP 2017 (arXiv 1704.05021)",
    .options = make_options<Options>,
    .bind = make_policy<TopK>};

}  // namespace numemu::policies
