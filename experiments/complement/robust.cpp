#include "experiments/complement/robust.hpp"

#include <algorithm>
#include <cmath>

#include "emu/net/backward.hpp"
#include "emu/net/ops/losses.hpp"
#include "experiments/complement/entropy.hpp"
#include "formats/float_guard.hpp"

namespace numemu::experiments::complement {
namespace {

constexpr std::int64_t kAtOnce = 100;
constexpr double kLost = 0x1p-11;  // 1 - p_g of at most this becomes 0: p_g is rounded to 1

double sum_of(const std::vector<double>& loss) {
  double sum = 0;
  for (const double one : loss) sum += one;
  return sum;
}

}  // namespace

Robust robustness(const net::Graph& graph, const net::Dataset& data, std::int64_t images,
                  const std::vector<double>& epsilons) {
  const FloatGuard guard;
  net::Numerics float32;
  const net::Step step{.phase = net::Phase::training};
  const std::int64_t all = images == 0 ? data.test_count() : std::min(images, data.test_count());
  const std::vector<std::string> want{graph.inputs.at(0).name};
  Robust robust{.top1 = std::vector<double>(epsilons.size())};
  for (std::int64_t first = 0; first < all; first += kAtOnce) {
    net::Targets targets;
    const net::Tensor x = data.test_batch(first, std::min(kAtOnce, all - first), targets);
    const auto rows = static_cast<float>(x.dim(0));
    double before = 0;
    const net::Injection injection{graph.nodes.back().name, [&](const net::Tensor& logits) {
                                     net::Tensor gradient;
                                     net::cross_entropy(logits, targets.classes, &gradient, rows);
                                     return gradient;
                                   }};
    const net::Tensor g =
        net::gradients(graph, {&x, 1}, float32, step, want, {&injection, 1}).values.at(0);
    const net::Tensor logits = net::forward(graph, x, float32);
    before = sum_of(net::cross_entropy(logits, targets.classes).loss);
    for (std::int64_t i = 0; i < x.dim(0); ++i) {
      const auto classes = static_cast<std::size_t>(logits.dim(-1));
      const std::span<const float> row(logits.data.data() + i * logits.dim(-1), classes);
      robust.lost +=
          complement_row(row, static_cast<std::size_t>(targets.classes[i])).rest <= kLost;
    }
    double slope = 0;
    for (const float one : g.data) slope += std::fabs(double{one});
    robust.predicted_rise += epsilons.at(0) * slope;
    for (std::size_t e = 0; e < epsilons.size(); ++e) {
      net::Tensor moved = x;
      const auto epsilon = static_cast<float>(epsilons[e]);
      for (std::size_t i = 0; i < moved.data.size(); ++i) {
        const float one = g.data[i];
        moved.data[i] += one > 0 ? epsilon : one < 0 ? -epsilon : 0;
      }
      const net::Classified seen =
          net::cross_entropy(net::forward(graph, moved, float32), targets.classes);
      robust.top1[e] += static_cast<double>(std::ranges::count(seen.right, 1));
      if (e == 0) robust.rise += sum_of(seen.loss) - before;
    }
  }
  const auto count = static_cast<double>(all);
  for (double& one : robust.top1) one *= 100 / count;
  robust.rise /= count;
  robust.predicted_rise /= count;
  robust.lost /= count;
  return robust;
}

}  // namespace numemu::experiments::complement
