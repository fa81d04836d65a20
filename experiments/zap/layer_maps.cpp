// Sums by image over maps and predictions.
#include "experiments/zap/layer_maps.hpp"

#include <cmath>
#include <utility>

#include "formats/digest.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"

namespace numemu::experiments {

RatioEstimate ratio_of(const std::vector<double>& parts, const std::vector<double>& wholes) {
  const auto n = static_cast<std::int64_t>(parts.size());
  const double whole = pairwise_sum(n, [&](std::int64_t i) { return wholes[i]; });
  if (whole == 0) return {};
  RatioEstimate ratio;
  ratio.value = pairwise_sum(n, [&](std::int64_t i) { return parts[i]; }) / whole;
  ratio.error = std::sqrt(pairwise_sum(n,
                                       [&](std::int64_t i) {
                                         const double residual = parts[i] - ratio.value * wholes[i];
                                         return residual * residual;
                                       })) /
                std::fabs(whole);
  return ratio;
}

PredictedMaps::PredictedMaps(const policies::ZapPredictor& predictor, net::Tensor maps)
    : predictor_(predictor), x_(std::move(maps)), z_(x_.shape) {
  // A few at a time: the predictor's own tensors are as large as the maps.
  constexpr std::int64_t kBatch = 128;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  for (std::int64_t first = 0; first < images; first += kBatch) {
    net::Shape shape = x_.shape;
    shape[0] = std::min(kBatch, images - first);
    net::Tensor part(shape);
    std::copy_n(x_.data.begin() + first * each, part.size(), part.data.begin());
    const net::Tensor z = predictor.predict(part);
    std::copy(z.data.begin(), z.data.end(), z_.data.begin() + first * each);
  }
}

policies::ZapTally PredictedMaps::tally(float threshold) const {
  return policies::tally_of(predictor_.mask(), x_, z_, threshold);
}

RatioEstimate PredictedMaps::bound() const {
  const std::int64_t images = x_.dim(0), each = x_.size() / images, channels = x_.dim(3);
  const policies::PositionMask& mask = predictor_.mask();
  std::vector<double> zeros(static_cast<std::size_t>(images)),
      all(zeros.size(), static_cast<double>(each));
  for (std::int64_t n = 0; n < images; ++n) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < each; ++i) {
      const bool predicted = mask.computed[static_cast<std::size_t>(i / channels)] == 0;
      count += predicted && !(x_.data[n * each + i] > 0);
    }
    zeros[n] = static_cast<double>(count);
  }
  return ratio_of(zeros, all);
}

RatioEstimate PredictedMaps::error_where(const std::function<bool(std::int64_t)>& skips) const {
  const FloatGuard guard;
  const std::int64_t images = x_.dim(0), each = x_.size() / images;
  std::vector<double> lost, all;
  for (std::int64_t n = 0; n < images; ++n) {
    const auto value = [&](std::int64_t i) { return static_cast<double>(x_.data[i]); };
    all.push_back(pairwise_sum(each, value, n * each));
    lost.push_back(pairwise_sum(
        each, [&](std::int64_t i) { return skips(i) ? value(i) : 0; }, n * each));
  }
  return ratio_of(lost, all);
}

RatioEstimate PredictedMaps::error(float threshold) const {
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, z_.data[i], threshold);
  });
}

RatioEstimate PredictedMaps::random_error(double rate, std::uint64_t seed) const {
  const RandomSource random{seed, Stream::mask, tensor_word(predictor_.graph().name + ".random"),
                            0};
  return error_where([&](std::int64_t i) {
    return !policies::keeps(predictor_.mask(), x_.dim(3), i, -HUGE_VALF, 0) &&
           random.uniform(static_cast<std::uint64_t>(i)) < rate;
  });
}

}  // namespace numemu::experiments
