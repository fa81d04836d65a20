// Sparse maps whose zeros lie together, as those behind a ReLU do.
#pragma once
#include <algorithm>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/random.hpp"

namespace numemu::testing {

/// ReLU of noise averaged over 3 x 3 neighbours, twice: [samples, height, width, channels].
inline net::Tensor correlated_maps(std::int64_t samples, std::int64_t height, std::int64_t width,
                                   std::int64_t channels, std::uint64_t seed) {
  net::Tensor x({samples, height, width, channels});
  const RandomSource random{seed, Stream::vectors, 3, 0};
  for (std::int64_t i = 0; i < x.size(); ++i)
    x.data[i] = static_cast<float>(random.uniform(static_cast<std::uint64_t>(i)) - 0.5);
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<float> from = x.data;
    for (std::int64_t n = 0; n < samples; ++n)
      for (std::int64_t i = 0; i < height; ++i)
        for (std::int64_t j = 0; j < width; ++j)
          for (std::int64_t c = 0; c < channels; ++c) {
            float sum = 0;
            for (std::int64_t y = std::max<std::int64_t>(0, i - 1); y < std::min(height, i + 2);
                 ++y)
              for (std::int64_t k = std::max<std::int64_t>(0, j - 1); k < std::min(width, j + 2);
                   ++k)
                sum += from[((n * height + y) * width + k) * channels + c];
            x.data[((n * height + i) * width + j) * channels + c] = sum / 9;
          }
  }
  for (float& value : x.data) value = std::max(0.0f, value);
  return x;
}

}  // namespace numemu::testing
