#include "emu/stats/interval.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/portable/math.hpp"

namespace numemu::stats {

Interval wilson(std::int64_t successes, std::int64_t n, double z, double times) {
  if (n <= 0) return {0, 1};
  const double p = static_cast<double>(successes) / static_cast<double>(n);
  const double count = static_cast<double>(n) * times;
  const double centre = p + z * z / (2 * count);
  const double half = z * std::sqrt(p * (1 - p) / count + z * z / (4 * count * count));
  const double norm = 1 + z * z / count;
  return {successes == 0 ? 0 : (centre - half) / norm, successes == n ? 1 : (centre + half) / norm};
}

double share_of_none(std::int64_t n) {
  constexpr double kTail = 0.025;
  return n <= 0 ? 1 : -portable::expm1(portable::log(kTail) / static_cast<double>(n));
}

namespace {

/// The four cells of two classifiers' answers: what an image adds to the mean, and how many do.
struct Cells {
  std::array<double, 4> value, count;
  double n, mean;
};

/// Variance over images under the likeliest shares whose mean is `mean`, inside the values. They
/// are count / (n (1 + tilt (value - mean))); where no tilt reaches that mean, the rest is the
/// share of the outermost value, which no image has.
double likeliest_variance(const Cells& cells, double mean) {
  const auto [least, most] = std::minmax_element(cells.value.begin(), cells.value.end());
  double low = -1 / (*most - mean), high = 1 / (mean - *least), tilt = 0;
  constexpr int kHalvings = 64;  // of a double's 53 bits
  for (int i = 0; i < kHalvings; ++i) {
    tilt = low + (high - low) / 2;
    double slope = 0;
    for (int c = 0; c < 4; ++c) {
      const double distance = cells.value[c] - mean;
      if (cells.count[c] > 0) slope += cells.count[c] * distance / (1 + tilt * distance);
    }
    (slope > 0 ? low : high) = tilt;
  }
  double shares = 0, squares = 0;
  for (int c = 0; c < 4; ++c) {
    const double distance = cells.value[c] - mean,
                 share =
                     cells.count[c] > 0 ? cells.count[c] / (cells.n * (1 + tilt * distance)) : 0;
    shares += share;
    squares += share * distance * distance;
  }
  const double outermost = (tilt > 0 ? *least : *most) - mean;
  return squares + std::max(0.0, 1 - shares) * outermost * outermost;
}

double score(const Cells& cells, double mean) {
  return (cells.mean - mean) / std::sqrt(likeliest_variance(cells, mean) / cells.n);
}

/// The mean between the observed one and `outside`, the last value there is, up to which the test
/// keeps it.
double last_kept(const Cells& cells, double z, double outside) {
  if (cells.mean == outside) return outside;
  double inside = cells.mean;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = inside + (outside - inside) / 2;
    (std::abs(score(cells, middle)) <= z ? inside : outside) = middle;
  }
  return inside;
}

Cells cells_of(const PairedAnswers& answers, double share, double times) {
  const auto counted = [times](std::int64_t count) { return static_cast<double>(count) * times; };
  Cells cells{{1 - share, 1, -share, 0},
              {counted(answers.both), counted(answers.only1), counted(answers.only2),
               counted(answers.n - answers.both - answers.only1 - answers.only2)},
              counted(answers.n),
              0};
  for (int c = 0; c < 4; ++c) cells.mean += cells.count[c] * cells.value[c] / cells.n;
  return cells;
}

}  // namespace

PairedAnswers count_answers(std::int64_t n, const std::function<bool(std::int64_t)>& first,
                            const std::function<bool(std::int64_t)>& second) {
  PairedAnswers answers;
  answers.n = n;
  for (std::int64_t i = 0; i < n; ++i) {
    const bool one = first(i), two = second(i);
    answers.both += one && two;
    answers.only1 += one && !two;
    answers.only2 += two && !one;
  }
  return answers;
}

Interval paired_share(const PairedAnswers& answers, double share, double z, double times) {
  if (answers.n <= 0) return {-share, 1};
  const Cells cells = cells_of(answers, share, times);
  return {last_kept(cells, z, -share), last_kept(cells, z, 1)};
}

double paired_score(const PairedAnswers& answers, double share, double mean) {
  return score(cells_of(answers, share, 1), mean);
}

Interval paired_difference(std::int64_t only1, std::int64_t only2, std::int64_t n) {
  return paired_share({0, only1, only2, n}, 1, kNormal95);
}

double paired_share_variance(const PairedAnswers& answers, double share) {
  const auto a = static_cast<double>(answers.both), b = static_cast<double>(answers.only1),
             c = static_cast<double>(answers.only2), n = static_cast<double>(answers.n);
  const double mean = ((1 - share) * a + b - share * c) / n;
  return ((1 - share) * (1 - share) * a + b + share * share * c) / n - mean * mean;
}

double images_needed(double variance, double distance, double z) {
  return z * z * variance / (distance * distance);
}

std::optional<std::int64_t> least_deciding(const std::function<bool(std::int64_t)>& decides,
                                           std::int64_t n, std::int64_t most) {
  std::int64_t open = 0, decided = std::clamp<std::int64_t>(n, 1, most);
  while (!decides(decided)) {
    if (decided == most) return {};
    open = decided;
    decided = decided > most / 2 ? most : 2 * decided;
  }
  while (decided - open > 1) {
    const std::int64_t middle = open + (decided - open) / 2;
    (decides(middle) ? decided : open) = middle;
  }
  return decided;
}

}  // namespace numemu::stats
