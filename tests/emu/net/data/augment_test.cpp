// Views of images: what shift, flip and crop show, that all outcomes come up evenly, and that seed,
// epoch and image alone decide.
#include <map>
#include <set>
#include <vector>

#include "emu/net/data/samples.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::net::augment_test {
namespace {

using numemu::test::message_of;

/// The stored pixels that a 3 x 4 view shows.
std::vector<std::int64_t> seen(ImageView view) {
  view.height = 3;
  view.width = 4;
  if (view.window_height == 0) view.window_height = 3;
  if (view.window_width == 0) view.window_width = 4;
  std::vector<std::int64_t> pixels;
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 4; ++x) pixels.push_back(view.source(y, x));
  }
  return pixels;
}

using Pixels = std::vector<std::int64_t>;

TEST_CASE("a view shifts and mirrors and zooms", "[fast]") {
  CHECK(seen({}) == Pixels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(seen({.down = 1, .right = -2}) == Pixels{-1, -1, -1, -1, 2, 3, -1, -1, 6, 7, -1, -1});
  CHECK(seen({.mirrored = true}) == Pixels{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8});
  // Mirrored first: what moves right leaves black on the left.
  CHECK(seen({.right = 1, .mirrored = true}) == Pixels{-1, 3, 2, 1, -1, 7, 6, 5, -1, 11, 10, 9});
  // Rows 1 and 2, columns 1 and 2; the centre of row 1 of 3 lies in row 1 of 2.
  CHECK(seen({.top = 1, .left = 1, .window_height = 2, .window_width = 2}) ==
        Pixels{5, 5, 6, 6, 9, 9, 10, 10, 9, 9, 10, 10});
}

TEST_CASE("views are drawn evenly within their bounds", "[fast]") {
  constexpr int kImages = 9000;
  const AugmentDraw draw{{.shift = 1, .flip = true, .crop = 2}, 7, 3};
  std::map<std::pair<std::int64_t, std::int64_t>, int> shifts;
  std::map<std::int64_t, int> windows;
  int mirrored = 0;
  for (std::int64_t id = 0; id < kImages; ++id) {
    const ImageView view = draw_view(draw, id, 8, 6);
    ++shifts[{view.down, view.right}];
    ++windows[view.window_height];
    mirrored += view.mirrored;
    CHECK(view.window_height - view.window_width == 2);
    const bool inside = view.top >= 0 && view.top + view.window_height <= 8 && view.left >= 0 &&
                        view.left + view.window_width <= 6;
    CHECK(inside);
  }
  // Five standard deviations of a binomial count.
  const auto even = [](int count, double probability) {
    const double mean = kImages * probability;
    return (count - mean) * (count - mean) < 25 * mean * (1 - probability);
  };
  CHECK(even(mirrored, 0.5));
  CHECK(shifts.size() == 9);
  for (const auto& [shift, count] : shifts) CHECK(even(count, 1.0 / 9));
  CHECK(windows.size() == 3);
  for (const auto& [window, count] : windows) CHECK(even(count, 1.0 / 3));
}

TEST_CASE("seed and epoch and image alone decide a view", "[fast]") {
  const auto views = [](std::uint64_t seed, std::int64_t epoch, std::int64_t first) {
    std::vector<std::int64_t> all;
    for (std::int64_t id = first; id < first + 20; ++id) {
      const ImageView view =
          draw_view({{.shift = 4, .flip = true, .crop = 8}, seed, epoch}, id, 32, 32);
      all.insert(all.end(), {view.down, view.right, view.mirrored, view.top, view.left});
    }
    return all;
  };
  CHECK(views(1, 2, 3) == views(1, 2, 3));
  CHECK(std::set{views(1, 2, 3), views(2, 2, 3), views(1, 3, 3), views(1, 2, 4)}.size() == 4);
  const ImageView plain = draw_view({{}, 1, 2}, 3, 32, 32);
  for (std::int64_t p = 0; p < 32 * 32; ++p) CHECK(plain.source(p / 32, p % 32) == p);
}

TEST_CASE("augmentation beyond the image is refused", "[fast]") {
  check({.shift = 5, .crop = 5}, 8, 6);
  CHECK(message_of([] { check({.shift = 6}, 8, 6); }) ==
        "augmentation: shift: expected 0 to 5 pixels, found 6");
  CHECK(message_of([] { check({.crop = -1}, 8, 6); }) ==
        "augmentation: crop: expected 0 to 5 pixels, found -1");
}

}  // namespace
}  // namespace numemu::net::augment_test
