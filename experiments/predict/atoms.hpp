// Numbers that many elements of a channel are: their rounding errors are no noise.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace numemu::experiments {

/// Numbers other than 0 that a large share of a channel's elements are: a constant background, what
/// a convolution makes of it, a channel that is off. All are rounded alike, in every sample.
class Atoms {
 public:
  static constexpr std::int64_t kRead = 64;  ///< elements of a channel that are looked at
  static constexpr std::int64_t kAlike = 4;  ///< as many of them are one number: 1 in 16

  /// Of lines of one element per channel; none where there are fewer than kRead lines.
  Atoms(const float* x, std::int64_t lines, std::int64_t channels);

  bool none() const { return of_channel_.empty(); }
  bool has(std::int64_t channel, float x) const {
    const std::vector<float>& atoms = of_channel_[static_cast<std::size_t>(channel)];
    return std::ranges::find(atoms, x) != atoms.end();
  }

 private:
  std::vector<std::vector<float>> of_channel_;  ///< empty: no channel has any
};

}  // namespace numemu::experiments
