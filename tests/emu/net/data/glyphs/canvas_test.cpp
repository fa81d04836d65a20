// Strokes on the canvas: inside, edge and outside, and what lies off the canvas.
#include "emu/net/data/glyphs/canvas.hpp"

#include "tests/catch.hpp"

namespace numemu::net::glyphs::canvas_test {
namespace {

constexpr std::int32_t centre(std::int32_t pixel) { return pixel * kPixel + kPixel / 2; }
std::int32_t ink(const Canvas& canvas, std::int32_t row, std::int32_t column) {
  return canvas.ink(row * kSide + column);
}

TEST_CASE("a horizontal line covers its rows and has smooth round ends", "[fast]") {
  Canvas canvas;
  canvas.draw({centre(5), centre(10)}, {centre(15), centre(10)}, kPixel, 256);
  CHECK(ink(canvas, 10, 5) == 255);
  CHECK(ink(canvas, 10, 15) == 255);
  // One pixel away: half covered. Two pixels away: nothing. Square roots are rounded down.
  CHECK(ink(canvas, 9, 10) == 128);
  CHECK(ink(canvas, 11, 10) == 128);
  CHECK(ink(canvas, 8, 10) == 0);
  CHECK(ink(canvas, 10, 16) == 128);
  CHECK(ink(canvas, 10, 17) == 0);
  // The corner is sqrt(2) pixels from the end: 256 + 128 - 362.
  CHECK(ink(canvas, 9, 16) == 22);
}

TEST_CASE("ink is the most that any stroke left, and can be erased", "[fast]") {
  Canvas canvas;
  const Point a{centre(3), centre(3)}, b{centre(9), centre(3)};
  canvas.draw(a, b, kPixel, 128);
  CHECK(ink(canvas, 3, 5) == 127);
  canvas.draw(a, b, kPixel, 256);
  canvas.draw(a, b, kPixel, 64);
  CHECK(ink(canvas, 3, 5) == 255);
  canvas.erase({centre(5), centre(0)}, {centre(5), centre(9)}, kPixel / 2);
  CHECK(ink(canvas, 3, 5) == 0);
  CHECK(ink(canvas, 3, 8) == 255);
}

TEST_CASE("points and strokes beyond the edge do no harm", "[fast]") {
  Canvas canvas;
  canvas.draw({-50 * kPixel, -50 * kPixel}, {-40 * kPixel, -45 * kPixel}, kPixel, 256);
  canvas.draw({90 * kPixel, 5 * kPixel}, {90 * kPixel, 5 * kPixel}, kPixel, 256);
  for (std::int32_t p = 0; p < kPixels; ++p) CHECK(canvas.ink(p) == 0);
  canvas.draw({centre(7), centre(7)}, {centre(7), centre(7)}, kPixel, 256);
  CHECK(ink(canvas, 7, 7) == 255);
}

}  // namespace
}  // namespace numemu::net::glyphs::canvas_test
