// A small learnable data set made of random bits: each class has a pattern, each image that pattern
// under noise.
#pragma once
#include "emu/net/data/dataset.hpp"
#include "formats/random.hpp"

namespace numemu::net::test {

inline constexpr std::int64_t kValidation = 5000;  // what Dataset sets aside
inline constexpr std::int64_t kTrain = 640;

inline Images synthetic_images(std::int64_t count, std::uint32_t identity) {
  constexpr std::int64_t kSide = 8, kPixels = kSide * kSide;
  Images images{
      .count = count, .height = kSide, .width = kSide, .channels = 1, .pixels = {}, .labels = {}};
  const RandomSource pattern{5, Stream::vectors, 1, 0}, noise{5, Stream::vectors, identity, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i * 7 % 10;
    images.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::int64_t p = 0; p < kPixels; ++p) {
      const std::uint32_t clean = pattern.bits(label * kPixels + p, 8),
                          dirt = noise.bits(i * kPixels + p, 8);
      images.pixels.push_back(static_cast<std::uint8_t>((clean + 2 * dirt) / 3));
    }
  }
  return images;
}

/// 640 training images after validation, 200 test images, 8x8x1, ten classes.
inline Dataset synthetic_dataset() {
  return Dataset("synthetic", 10, synthetic_images(kTrain + kValidation, 2),
                 synthetic_images(200, 3), {0.5f}, {0.25f});
}

}  // namespace numemu::net::test
