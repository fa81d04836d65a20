// The end of a run in sorted elements is that of a walk, wherever it begins and ends.
#include "formats/analysis/first_outside.hpp"

#include "tests/catch.hpp"

namespace first_outside_test {

using numemu::first_outside;

TEST_CASE("the first index outside is that of a walk", "[fast]") {
  for (std::size_t size = 0; size <= 40; ++size) {
    for (std::size_t first = 0; first <= size; ++first) {
      for (std::size_t limit = 0; limit <= size + 1; ++limit) {
        const auto inside = [&](std::size_t i) { return i < limit; };
        std::size_t walked = first;
        while (walked < size && inside(walked)) ++walked;
        REQUIRE(first_outside(first, size, inside) == walked);
      }
    }
  }
}

TEST_CASE("no index beyond the end is asked for, and few before it", "[fast]") {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, kSize / 3, kSize - 1, kSize}) {
    std::size_t asked = 0;
    const std::size_t found = first_outside(0, kSize, [&](std::size_t i) {
      REQUIRE(i < kSize);
      ++asked;
      return i < limit;
    });
    CHECK(found == limit);
    CHECK(asked <= 2 * 20 + 2);  // as many doublings and halvings as the size has bits
  }
}

}  // namespace first_outside_test
