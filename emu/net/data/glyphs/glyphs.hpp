// The generated image set: every image is a pure function of its number, in integer arithmetic
// only.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "emu/net/data/dataset.hpp"

namespace numemu::net::glyphs {

/// A position; the unit depends on the stage: 1/64 grid unit in a sign, 1/256 pixel on the canvas.
struct Point {
  std::int32_t x = 0, y = 0;
};

/// Connected points, short enough apart that moving each of them bends the stroke smoothly.
using Polyline = std::vector<Point>;

/// One class: its strokes around the origin, within +-12 grid units of 64 steps each, y downwards.
struct Sign {
  std::string_view name;
  std::vector<Polyline> strokes;
};

inline constexpr int kSigns = 10;
inline constexpr std::int32_t kGridUnit = 64;

/// The signs in label order. Neighbours (0 1, 2 3, ...) resemble each other on purpose.
const std::array<Sign, kSigns>& signs();

// A small grey canvas that draws round-ended strokes with smooth edges, in integer arithmetic only.

inline constexpr std::int32_t kSide = 28;    ///< pixels per side
inline constexpr std::int32_t kPixel = 256;  ///< canvas steps per pixel
inline constexpr std::int32_t kPixels = kSide * kSide;

/// Ink per pixel, 0..255, row by row.
class Canvas {
 public:
  /// Ink becomes at least opacity (0..256) / 256 of what a line from a to b of that half width
  /// covers.
  void draw(Point a, Point b, std::int32_t half_width, std::int32_t opacity);
  /// Ink becomes at most what such a line leaves uncovered.
  void erase(Point a, Point b, std::int32_t half_width);
  std::int32_t ink(std::int32_t pixel) const { return ink_[pixel]; }

 private:
  template <class Mix>
  void stroke(Point a, Point b, std::int32_t half_width, Mix mix);
  std::array<std::uint8_t, kPixels> ink_{};
};

inline constexpr std::int64_t kTrainImages = 60'000;
inline constexpr std::int64_t kTestImages = 10'000;
inline constexpr std::int64_t kClasses = 10;

/// Images first .. last-1 of the one endless sequence (test images follow the training images): 28
/// x 28 x 1 bytes, ink bright on dark, labels 0..9 drawn uniformly. The same bits for any number of
/// threads.
Images generate(std::int64_t first, std::int64_t last);

}  // namespace numemu::net::glyphs
