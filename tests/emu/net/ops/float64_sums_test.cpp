// Float64 sums: exact on integers, the tree of the column sums bit for bit.
#include "emu/net/ops/float64_sums.hpp"

#include "emu/net/sums.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("line_sum adds every term once", "[fast]") {
  for (const std::int64_t n : {0, 1, 7, 8, 9, 63, 64, 65, 128, 129, 1000, 4097}) {
    const double sum = line_sum(n, [](std::int64_t i) { return static_cast<double>(i * i + 1); });
    std::int64_t expected = 0;
    for (std::int64_t i = 0; i < n; ++i) expected += i * i + 1;
    CHECK(sum == static_cast<double>(expected));
  }
}

TEST_CASE("line_sum adds lanes within leaves and halves above them", "[fast]") {
  // 2^60 swallows a 1 added to it alone: which terms meet first decides the result.
  const auto sum_of = [](std::vector<double> terms) {
    return line_sum(static_cast<std::int64_t>(terms.size()),
                    [&](std::int64_t i) { return terms[static_cast<std::size_t>(i)]; });
  };
  std::vector<double> lanes(16);
  lanes[0] = 0x1p60, lanes[8] = -0x1p60, lanes[1] = 1;
  CHECK(sum_of(lanes) == 1);
  std::swap(lanes[8], lanes[9]);  // another lane, which meets the 1 first
  CHECK(sum_of(lanes) == 0);
  std::vector<double> leaves(128);
  leaves[0] = 0x1p60, leaves[8] = -0x1p60, leaves[64] = 1;
  CHECK(sum_of(leaves) == 1);
  std::swap(leaves[8], leaves[72]);
  CHECK(sum_of(leaves) == 0);
}

TEST_CASE("column_tree is the tree of column_sums", "[fast]") {
  for (const std::int64_t rows : {1, 63, 64, 65, 128, 129, 200, 1000, 4097}) {
    constexpr std::int64_t kColumns = 3;
    Tensor x = test::random_tensor({rows, kColumns}, 1);
    for (float& v : x.data) v = v * v * v * 1e10f;  // so that the order of additions shows
    const float* const data = x.data.data();
    const std::vector<double> sums =
        column_tree(rows, kColumns, [=](std::int64_t r, double* total) {
          for (std::int64_t c = 0; c < kColumns; ++c) total[c] += data[r * kColumns + c];
        });
    CHECK(sums == column_sums(data, rows, kColumns));
  }
}

}  // namespace
}  // namespace numemu::net
