// The ten invented signs of the glyphs set as polylines in integer coordinates.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

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

}  // namespace numemu::net::glyphs
