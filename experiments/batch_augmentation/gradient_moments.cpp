#include "experiments/batch_augmentation/gradient_moments.hpp"

#include <algorithm>
#include <cmath>

#include "emu/stats/resampling.hpp"
#include "emu/stats/squares.hpp"
#include "formats/portable/pairwise.hpp"

namespace numemu::experiments::batch_augmentation {

double mean_variance(double sigma2, double rho, double samples, double copies) {
  return sigma2 / samples * (rho + (1 - rho) / copies);
}

Moments moments(const MomentGroups& groups, std::int64_t copies, std::int64_t left_out) {
  double n = 0, squares = 0, means = 0, along = 0;
  for (const MomentGroup& group : groups) along += group.along;
  for (std::int64_t g = 0; g < std::ssize(groups); ++g) {
    const MomentGroup& group = groups[static_cast<std::size_t>(g)];
    if (g == left_out) {
      along += group.own - 2 * group.along;  // |T - S|^2
      continue;
    }
    n += static_cast<double>(group.samples);
    squares += group.squares;
    means += group.means;
  }
  const auto of = static_cast<double>(copies);
  return {.one = squares / n,
          .same = copies > 1 ? (of * means - squares) / n / (of - 1) : NAN,
          .other = (along - means) / (n * (n - 1))};
}

Estimate estimate(std::int64_t groups,
                  const std::function<double(std::int64_t left_out)>& statistic) {
  return {statistic(kNone), stats::jackknife_error(groups, statistic)};
}

void GradientSums::add(std::size_t group, std::span<const std::vector<float>> copies) {
  const std::size_t size = copies.front().size();
  const auto of = static_cast<double>(copies.size());
  std::vector<double>& sum = sums_[group];
  sum.resize(size);
  std::vector<double> mean(size);
  MomentGroup& to = groups_[group];
  ++to.samples;
  for (const std::vector<float>& g : copies) {
    to.squares += stats::sum_of_squares(std::ssize(g), g.data()) / of;
    for (std::size_t i = 0; i < size; ++i) mean[i] += double{g[i]};
  }
  for (std::size_t i = 0; i < size; ++i) {
    mean[i] /= of;
    sum[i] += mean[i];
  }
  to.means += pairwise_sum(std::ssize(mean), [&](std::int64_t i) {
    const double m = mean[static_cast<std::size_t>(i)];
    return m * m;
  });
}

MomentGroups GradientSums::groups() const {
  MomentGroups all = groups_;
  std::vector<double> total;
  for (const std::vector<double>& sum : sums_) {
    total.resize(std::max(total.size(), sum.size()));
    for (std::size_t i = 0; i < sum.size(); ++i) total[i] += sum[i];
  }
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return pairwise_sum(std::ssize(a), [&](std::int64_t i) {
      return a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)];
    });
  };
  for (std::size_t g = 0; g < all.size(); ++g) {
    all[g].along = product(sums_[g], total);
    all[g].own = product(sums_[g], sums_[g]);
  }
  return all;
}

}  // namespace numemu::experiments::batch_augmentation
