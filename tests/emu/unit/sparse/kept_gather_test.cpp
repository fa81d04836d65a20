// A product over compressed operands equals the dense one over what is kept, and reads nothing
// else.
#include "emu/unit/sparse/kept_gather.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "emu/unit/sparse/compress.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"
#include "tests/emu/unit/sparse/patterns.hpp"

namespace kept_gather_test {

using namespace numemu;
using namespace numemu::unit;

TEST_CASE("sparse gather: offsets of every pattern", "[fast]") {
  test::Dice dice(2);
  for (const Pattern& p : test::patterns(1, kMostGroup)) {
    const std::int64_t groups = 5, rows = 3, depth = groups * p.group;
    const auto all = test::masks(p);
    std::vector<std::uint8_t> index;
    std::vector<std::int32_t> expected;
    Gather b = Gather::matrix(4, depth, dice.below(2) == 0);
    for (std::int32_t& offset : b.depth) offset += static_cast<std::int32_t>(dice.below(7));
    const std::int64_t row = dice.below(rows);
    for (std::int64_t g = 0; g < rows * groups; ++g) {
      const std::uint32_t mask = all[dice.below(static_cast<std::int64_t>(all.size()))];
      test::append_index(p, mask, index);
      for (int i = 0; i < p.group; ++i)
        if (g / groups == row && test::has_bit(mask, i))
          expected.push_back(b.depth[g % groups * p.group + i]);
    }
    const Gather kept = gather_kept(p, index.data(), row, b);
    REQUIRE(kept.depth == expected);
    REQUIRE(kept.row == b.row);
    const std::uint8_t* of_row = index.data() + row * groups * p.kept;
    for (std::int64_t j = 0; j < groups * p.kept; ++j)
      REQUIRE(b.depth[kept_k(p, of_row, j)] == expected[j]);
  }
}

TEST_CASE("sparse gather: compressed rows times gathered columns, dropped elements unread",
          "[fast]") {
  const Unit& unit = find_unit("f32.sequential");
  const Format& f32 = find_format("float32");
  for (const char* name : {"1:2", "2:4", "4:8.pairwise", "3:7", "8:16"}) {
    const Pattern p = parse_pattern(name);
    const auto all = test::masks(p);
    const std::int64_t m = 4, n = 5, depth = p.group * 6, count = kept_depth(p, depth);
    test::Dice dice(13);
    std::vector<float> dense(m * depth), b(n * depth), kept(m * count);
    std::vector<std::uint8_t> mask(m * depth), index(m * count);
    for (float& x : b) x = static_cast<float>(dice.below(2001) - 1000) / 7;
    for (std::int64_t g = 0; g < m * 6; ++g) {
      const std::uint32_t bits = all[dice.below(static_cast<std::int64_t>(all.size()))];
      for (int i = 0; i < p.group; ++i) {
        dense[g * p.group + i] = static_cast<float>(dice.below(2001) - 1000) / 3;
        mask[g * p.group + i] = test::has_bit(bits, i);
      }
    }
    compress(p, DenseOperand<float>{&f32, dense.data(), m, depth, mask.data()}, kept.data(),
             index.data());
    const Gather plain_b = Gather::matrix(n, depth), one = Gather::matrix(1, count);
    for (std::int64_t i = 0; i < m; ++i) {
      // NaN opposite every dropped element: a unit that read it would show it.
      std::vector<float> poisoned = b;
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t k = 0; k < depth; ++k)
          if (mask[i * depth + k] == 0)
            poisoned[j * depth + k] = std::numeric_limits<float>::quiet_NaN();
      const Gather columns = gather_kept(p, index.data(), i, plain_b);
      std::vector<float> d(n);
      Gemm gemm;
      gemm.m = 1, gemm.n = n, gemm.k = count;
      gemm.a = {&f32, kept.data() + i * count, &one};
      gemm.b = {&f32, poisoned.data(), &columns};
      gemm.d = d.data();
      unit.multiply(gemm);
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          if (mask[i * depth + k] != 0) sum = std::fma(dense[i * depth + k], b[j * depth + k], sum);
        REQUIRE(std::bit_cast<std::uint32_t>(d[j]) == std::bit_cast<std::uint32_t>(sum));
      }
    }
  }
}

TEST_CASE("sparse gather: illegal indices and tails are refused", "[fast]") {
  const Pattern p = parse_pattern("2:4");
  const std::vector<std::uint8_t> index = {0, 1, 3, 3};
  CHECK_NOTHROW(gather_kept(p, index.data(), 0, Gather::matrix(1, 4)));
  CHECK_THROWS_WITH(gather_kept(p, index.data(), 1, Gather::matrix(1, 4)),
                    Catch::StartsWith("meta row 1, position 1"));
  CHECK_THROWS_WITH(gather_kept(p, index.data(), 0, Gather::matrix(1, 6)),
                    Catch::Contains("K = 6"));
}

}  // namespace kept_gather_test
