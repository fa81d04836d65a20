// The outlines stay on their grid and are fine enough to bend.
#include "emu/net/data/glyphs/signs.hpp"

#include <set>

#include "tests/catch.hpp"

namespace numemu::net::glyphs::signs_test {
namespace {

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
}  // namespace numemu::net::glyphs::signs_test
