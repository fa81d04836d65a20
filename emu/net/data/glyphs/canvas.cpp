// Coverage of a pixel = half width minus distance to the segment, a ramp one pixel wide.
#include "emu/net/data/glyphs/canvas.hpp"

#include <algorithm>
#include <vector>

namespace numemu::net::glyphs {
namespace {

constexpr std::int32_t kOpaque = 255;
constexpr std::int32_t kHalfPixel = kPixel / 2;
constexpr std::int32_t kFarthest = 4;  // pixels; half_width + kHalfPixel stays below

/// Distance in canvas steps by squared distance in 1/256 pixel^2.
std::vector<std::int32_t> square_roots() {
  std::vector<std::int32_t> root(kFarthest * kFarthest * kPixel);
  std::int32_t r = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(root.size()); ++i) {
    while ((r + 1) * (r + 1) <= i * kPixel) ++r;
    root[i] = r;
  }
  return root;
}

}  // namespace

template <class Mix>
void Canvas::stroke(Point a, Point b, std::int32_t half_width, Mix mix) {
  static const std::vector<std::int32_t> root = square_roots();
  const std::int32_t reach = half_width + kHalfPixel;
  const auto pixel_of = [](std::int32_t step) { return std::clamp(step / kPixel, 0, kSide - 1); };
  const std::int32_t left = pixel_of(std::min(a.x, b.x) - reach),
                     right = pixel_of(std::max(a.x, b.x) + reach);
  const std::int32_t top = pixel_of(std::min(a.y, b.y) - reach),
                     bottom = pixel_of(std::max(a.y, b.y) + reach);
  const std::int64_t dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy;
  // Squared distances from which on the root is at least `reach`: nothing is covered.
  const std::int64_t outside = std::int64_t{reach} * reach + kPixel;
  for (std::int32_t row = top; row <= bottom; ++row) {
    for (std::int32_t column = left; column <= right; ++column) {
      const std::int64_t px = column * kPixel + kHalfPixel - a.x,
                         py = row * kPixel + kHalfPixel - a.y;
      const std::int64_t along = px * dx + py * dy;
      std::int64_t distance2;
      if (along <= 0) {
        distance2 = px * px + py * py;
      } else if (along >= length2) {
        distance2 = (px - dx) * (px - dx) + (py - dy) * (py - dy);
      } else {
        const std::int64_t across = px * dy - py * dx;
        if (across * across >= outside * length2) continue;  // most pixels: no division
        distance2 = across * across / length2;
      }
      if (distance2 >= outside) continue;
      distance2 /= kPixel;
      const std::int32_t cover = std::clamp(reach - root[distance2], 0, kOpaque);
      std::uint8_t& ink = ink_[row * kSide + column];
      ink = static_cast<std::uint8_t>(mix(ink, cover));
    }
  }
}

void Canvas::draw(Point a, Point b, std::int32_t half_width, std::int32_t opacity) {
  stroke(a, b, half_width, [=](std::int32_t ink, std::int32_t cover) {
    return std::max(ink, cover * opacity / 256);
  });
}

void Canvas::erase(Point a, Point b, std::int32_t half_width) {
  stroke(a, b, half_width,
         [](std::int32_t ink, std::int32_t cover) { return std::min(ink, kOpaque - cover); });
}

}  // namespace numemu::net::glyphs
