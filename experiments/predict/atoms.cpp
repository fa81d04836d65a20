#include "experiments/predict/atoms.hpp"

#include <array>
#include <cmath>
#include <iterator>

namespace numemu::experiments {

Atoms::Atoms(const float* x, std::int64_t lines, std::int64_t channels) {
  if (lines < kRead) return;
  constexpr double kGolden = 0.61803398874989485;  // no regular layout meets its multiples
  std::array<std::int64_t, kRead> places;
  for (std::int64_t i = 0; i < kRead; ++i) {
    const double at = static_cast<double>(i + 1) * kGolden;
    places[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>((at - std::floor(at)) * static_cast<double>(lines));
  }
  std::array<float, kRead> read;
  for (std::int64_t c = 0; c < channels; ++c) {
    std::ranges::transform(places, read.begin(),
                           [&](std::int64_t line) { return x[line * channels + c]; });
    if (std::ranges::any_of(read, [](float v) { return std::isnan(v); })) continue;
    std::ranges::sort(read);
    for (auto first = read.begin(); first != read.end();) {
      const auto end = std::upper_bound(first, read.end(), *first);
      if (*first != 0 && std::distance(first, end) >= kAlike) {
        of_channel_.resize(static_cast<std::size_t>(channels));
        of_channel_[static_cast<std::size_t>(c)].push_back(*first);
      }
      first = end;
    }
  }
}

}  // namespace numemu::experiments
