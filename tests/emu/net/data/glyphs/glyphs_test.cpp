// The generated images: the same bits for any number of threads and any range they are asked for
// in; the strokes of their signs.
#include "emu/net/data/glyphs/glyphs.hpp"

#include <omp.h>

#include <set>

#include "formats/digest.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::net::glyphs_test {
namespace {

std::string digest(const std::vector<std::uint8_t>& bytes) {
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

TEST_CASE("the first 300 images are pinned for 1, 2 and 3 threads", "[fast]") {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    const Images images = glyphs::generate(0, 300);
    CHECK(images.count == 300);
    CHECK(digest(images.pixels) ==
          "724906218839ceb99d70b7e0c4d801cfb13f8836a93226ad0805866a69542cd3");
  }
  omp_set_num_threads(before);
}

TEST_CASE("an image depends on its number alone", "[fast]") {
  const Images run = glyphs::generate(59'990, 60'010);
  for (const std::int64_t image : {59'990, 60'000, 60'009}) {
    const Images one = glyphs::generate(image, image + 1);
    const auto* begin = run.pixels.data() + (image - 59'990) * 784;
    CHECK(one.labels[0] == run.labels[image - 59'990]);
    CHECK(std::equal(begin, begin + 784, one.pixels.begin(), one.pixels.end()));
  }
}

TEST_CASE("a label is the first draw of its image on the data stream", "[fast]") {
  const Images images = glyphs::generate(1000, 1020);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const RandomSource source{0, Stream::data, 1000 + i, 0};
    CHECK(images.labels[i] == std::uint64_t{source.bits(0, 32)} * 10 >> 32);
  }
}

TEST_CASE("images are neither empty nor full, and classes are balanced", "[fast]") {
  const Images images = glyphs::generate(0, 5000);
  std::vector<int> per_class(10);
  for (std::int64_t i = 0; i < images.count; ++i) {
    ++per_class[images.labels[i]];
    const auto* begin = images.pixels.data() + i * 784;
    const auto [darkest, brightest] = std::minmax_element(begin, begin + 784);
    CHECK(*brightest - *darkest >= 40);
  }
  // Binomial(5000, 1/10): five standard deviations are 106.
  constexpr int kMostDeviation = 106;
  for (const int n : per_class) CHECK(std::abs(n - 500) <= kMostDeviation);
}

using namespace glyphs;

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

TEST_CASE("ten signs of different names on the design grid, in short pieces", "[fast]") {
  constexpr std::int32_t kEdge = 12 * kGridUnit;
  constexpr std::int32_t kLongest =
      6 * kGridUnit;  // a piece of a curve is longer than one of a line
  std::set<std::string_view> names;
  for (const Sign& sign : signs()) {
    names.insert(sign.name);
    CHECK(!sign.strokes.empty());
    for (const Polyline& stroke : sign.strokes) {
      REQUIRE(stroke.size() >= 2);
      for (std::size_t i = 0; i < stroke.size(); ++i) {
        CHECK(std::abs(stroke[i].x) <= kEdge);
        CHECK(std::abs(stroke[i].y) <= kEdge);
        if (i == 0) continue;
        CHECK(std::abs(stroke[i].x - stroke[i - 1].x) <= kLongest);
        CHECK(std::abs(stroke[i].y - stroke[i - 1].y) <= kLongest);
      }
    }
  }
  CHECK(names.size() == kSigns);
}

}  // namespace

}  // namespace numemu::net::glyphs_test
