// Plain matrices and padding: every element lands at its defined place.
#include "emu/unit/gather.hpp"

#include <cstdint>
#include <vector>

#include "tests/catch.hpp"

namespace gather_test {

using numemu::unit::Gather;
using numemu::unit::Padding;

TEST_CASE("gather: a matrix and its transpose address every element once", "[fast]") {
  const bool transposed = GENERATE(false, true);
  const Gather g = Gather::matrix(3, 5, transposed);
  REQUIRE(g.padding.identity());
  REQUIRE(g.padding.source_size() == 15);
  REQUIRE(g.row.size() == 3);
  REQUIRE(g.depth.size() == 5);
  for (int r = 0; r < 3; ++r)
    for (int k = 0; k < 5; ++k)
      CHECK(g.row[r] + g.depth[k] == (transposed ? k * 3 + r : r * 5 + k));
}

TEST_CASE("gather: padding and dilation place pixels, the rest is the zero given", "[fast]") {
  Padding p;
  p.outer = 2, p.depth = 2, p.height = 2, p.width = 3, p.channels = 2;
  p.front = 1, p.top = 1, p.left = 2;
  p.dilation = GENERATE(1, 2, 3);
  p.dilation_height = GENERATE(0, 1, 4);
  const std::int64_t rows = p.dilation_height == 0 ? p.dilation : p.dilation_height;
  REQUIRE(p.row_dilation() == rows);
  p.dilation_depth = GENERATE(1, 3);
  p.padded_depth = p.front + (p.depth - 1) * p.dilation_depth + 2;
  p.padded_height = p.top + (p.height - 1) * rows + 2;
  p.padded_width = p.left + (p.width - 1) * p.dilation + 3;
  REQUIRE_FALSE(p.identity());
  std::vector<std::uint8_t> source(p.source_size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i + 1);
  std::vector<std::uint8_t> padded(p.padded_size(), 99);
  numemu::unit::pad<std::uint8_t>(p, source.data(), padded.data(), 77);

  std::vector<std::uint8_t> expected(p.padded_size(), 77);
  for (std::int64_t o = 0; o < p.outer; ++o)
    for (std::int64_t z = 0; z < p.depth; ++z)
      for (std::int64_t y = 0; y < p.height; ++y)
        for (std::int64_t x = 0; x < p.width; ++x)
          for (std::int64_t c = 0; c < p.channels; ++c) {
            const auto plane = o * p.padded_depth + p.front + z * p.dilation_depth;
            const auto line = plane * p.padded_height + p.top + y * rows;
            const auto to = (line * p.padded_width + p.left + x * p.dilation) * p.channels + c;
            const auto row = (o * p.depth + z) * p.height + y;
            expected[to] = source[(row * p.width + x) * p.channels + c];
          }
  CHECK(padded == expected);
}

TEST_CASE("gather: padding that changes nothing copies", "[fast]") {
  Padding p;
  p.outer = 3, p.height = 2, p.width = 2, p.channels = 4;
  p.padded_height = 2, p.padded_width = 2;
  REQUIRE(p.identity());
  std::vector<float> source(p.source_size(), 1.5f), padded(p.padded_size(), 0);
  numemu::unit::pad(p, source.data(), padded.data(), 0.0f);
  CHECK(padded == source);
}

TEST_CASE("gather: rows spread apart alone are no identity", "[fast]") {
  Padding p;
  p.height = p.padded_height = 1, p.width = p.padded_width = 3;
  CHECK(p.identity());
  p.dilation_height = 2;
  CHECK_FALSE(p.identity());
  p.dilation_height = 0, p.depth = 2, p.padded_depth = 3;
  CHECK_FALSE(p.identity());
}

TEST_CASE("gather: a matrix beyond the offsets is refused", "[fast]") {
  CHECK_THROWS_WITH(Gather::matrix(std::int64_t{1} << 16, (std::int64_t{1} << 15) + 1),
                    Catch::Contains("65536 x 32769") && Catch::Contains("beyond the 2^31"));
  CHECK(Gather::matrix(0, 5).row.empty());
}

}  // namespace gather_test
