#include "policies/table/base/row_codebook.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "formats/quantize.hpp"

namespace numemu::policies {
namespace {

/// Sorted finite elements, with their sums from the first one on.
struct Sorted {
  std::vector<double> x, sums;
};

Sorted sorted(std::span<const float> elements) {
  Sorted s;
  for (const float v : elements) {
    if (std::isfinite(v)) s.x.push_back(v);
  }
  std::sort(s.x.begin(), s.x.end());
  s.sums.resize(s.x.size() + 1);
  for (std::size_t i = 0; i < s.x.size(); ++i) s.sums[i + 1] = s.sums[i] + s.x[i];
  return s;
}

/// Where each entry's elements end: those up to the midpoint to the next entry are its own.
std::vector<std::size_t> ends_of(const Sorted& s, const std::vector<double>& entries) {
  std::vector<std::size_t> ends;
  for (std::size_t k = 0; k + 1 < entries.size(); ++k) {
    const double middle = (entries[k] + entries[k + 1]) / 2;
    ends.push_back(
        static_cast<std::size_t>(std::upper_bound(s.x.begin(), s.x.end(), middle) - s.x.begin()));
  }
  ends.push_back(s.x.size());
  return ends;
}

std::vector<float> as_float16(const std::vector<double>& entries) {
  static const Format& format = find_format("float16");
  Conversion conversion;
  conversion.format = &format;
  std::vector<float> rounded(entries.begin(), entries.end());
  quantize_values(conversion, rounded.data(), static_cast<std::int64_t>(rounded.size()), 1.0f,
                  rounded.data());
  return rounded;
}

double squared_distance(const float* row, const double* centre, std::int64_t width) {
  double sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += (row[c] - centre[c]) * (row[c] - centre[c]);
  return sum;
}

/// Rows at equal steps in the order of their norms.
std::vector<double> first_centres(std::span<const float> table, std::int64_t width,
                                  std::int64_t clusters) {
  const auto rows = static_cast<std::int64_t>(table.size()) / width;
  std::vector<std::pair<double, std::int64_t>> order;
  const std::vector<double> zero(static_cast<std::size_t>(width));
  for (std::int64_t r = 0; r < rows; ++r)
    order.emplace_back(squared_distance(table.data() + r * width, zero.data(), width), r);
  std::sort(order.begin(), order.end());
  std::vector<double> centres;
  for (std::int64_t k = 0; k < clusters; ++k) {
    const float* const row =
        table.data() + order[(2 * k + 1) * rows / (2 * clusters)].second * width;
    centres.insert(centres.end(), row, row + width);
  }
  return centres;
}

}  // namespace

std::vector<float> lloyd_codebook(std::span<const float> elements, int bits,
                                  std::int64_t iterations) {
  const std::size_t count = std::size_t{1} << bits;
  const Sorted s = sorted(elements);
  std::vector<double> entries(count, 0.0);
  if (s.x.empty()) return as_float16(entries);
  const double low = s.x.front(), step = (s.x.back() - low) / static_cast<double>(count - 1);
  for (std::size_t k = 0; k < count; ++k) entries[k] = low + static_cast<double>(k) * step;
  std::vector<std::size_t> ends = ends_of(s, entries);
  for (std::int64_t i = 0; i < iterations; ++i) {
    std::size_t first = 0;
    for (std::size_t k = 0; k < count; first = ends[k++]) {
      if (ends[k] > first)
        entries[k] = (s.sums[ends[k]] - s.sums[first]) / static_cast<double>(ends[k] - first);
    }
    std::vector<std::size_t> next = ends_of(s, entries);
    if (next == ends) break;
    ends = std::move(next);
  }
  return as_float16(entries);
}

float nearest_entry(std::span<const float> ascending, float x) {
  const auto above = std::lower_bound(ascending.begin(), ascending.end(), x);
  if (above == ascending.end() || std::isnan(x)) return ascending.back();
  if (above == ascending.begin()) return *above;
  return double{x} - double{above[-1]} <= double{*above} - double{x} ? above[-1] : *above;
}

std::vector<std::int64_t> cluster_rows(std::span<const float> table, std::int64_t width,
                                       std::int64_t clusters, std::int64_t iterations) {
  const auto rows = static_cast<std::int64_t>(table.size()) / width;
  clusters = std::min(clusters, rows);
  std::vector<double> centres = first_centres(table, width, clusters);
  std::vector<std::int64_t> of(static_cast<std::size_t>(rows), -1);
  for (std::int64_t i = 0; i <= iterations; ++i) {
    bool moved = false;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t best = 0;
      double least = HUGE_VAL;
      for (std::int64_t k = 0; k < clusters; ++k) {
        const double distance =
            squared_distance(table.data() + r * width, centres.data() + k * width, width);
        if (distance < least) {
          least = distance;
          best = k;
        }
      }
      moved = moved || of[r] != best;
      of[r] = best;
    }
    if (!moved) break;
    std::vector<double> sums(centres.size());
    std::vector<std::int64_t> counts(static_cast<std::size_t>(clusters));
    for (std::int64_t r = 0; r < rows; ++r) {
      ++counts[of[r]];
      for (std::int64_t c = 0; c < width; ++c) sums[of[r] * width + c] += table[r * width + c];
    }
    for (std::int64_t k = 0; k < clusters; ++k) {
      for (std::int64_t c = 0; counts[k] > 0 && c < width; ++c)
        centres[k * width + c] = sums[k * width + c] / static_cast<double>(counts[k]);
    }
  }
  return of;
}

}  // namespace numemu::policies
