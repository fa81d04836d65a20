// The generated image set: every image is a pure function of its number, in integer arithmetic
// only.
#pragma once
#include <cstdint>

#include "emu/net/data/dataset.hpp"

namespace numemu::net::glyphs {

inline constexpr std::int64_t kTrainImages = 60'000;
inline constexpr std::int64_t kTestImages = 10'000;
inline constexpr std::int64_t kClasses = 10;

/// Images first .. last-1 of the one endless sequence (test images follow the training images): 28
/// x 28 x 1 bytes, ink bright on dark, labels 0..9 drawn uniformly. The same bits for any number of
/// threads.
Images generate(std::int64_t first, std::int64_t last);

}  // namespace numemu::net::glyphs
