// Objective squared_error: the mean squared error of a sample's numbers.
#include <fmt/format.h>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/objective.hpp"
#include "formats/error.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::net {
namespace {

Classified squared_error(const Tensor& output, const Targets& targets, Tensor* gradient,
                         float scale) {
  const std::int64_t samples = output.shape.empty() ? 0 : output.dim(0), n = output.size();
  if (samples == 0 || n != std::ssize(targets.values))
    throw Error(fmt::format("squared_error: expected an output of {} numbers, got {}",
                            targets.values.size(), to_string(output.shape)));
  const std::int64_t each = n / samples;
  const auto error = [&](std::int64_t i) { return double{output.data[i]} - targets.values[i]; };
  Classified result{std::vector<double>(static_cast<std::size_t>(samples)), {}, samples, {}};
  for (std::int64_t s = 0; s < samples; ++s)
    result.loss[s] = pairwise_sum(each,
                                  [&](std::int64_t i) {
                                    const double e = error(s * each + i);
                                    return e * e;
                                  }) /
                     static_cast<double>(each);
  if (gradient == nullptr) return result;
  *gradient = Tensor(output.shape);
  for_each_element(n, [&](std::int64_t i) {
    gradient->data[i] =
        neutral(static_cast<float>(2 * error(i) * double{scale} / static_cast<double>(n)));
  });
  return result;
}

}  // namespace

extern const Objective objective_squared_error{
    .name = "squared_error", .evaluate = squared_error, .target = TargetKind::values};

}  // namespace numemu::net
