// Sums bit for bit against the pairwise tree, for any number of threads.
#include "emu/net/ops/sums.hpp"

#include <omp.h>

#include "formats/portable/pairwise.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::sums_test {
namespace {

TEST_CASE("column sums are pairwise sums bit for bit, for 1, 2 and 3 threads", "[fast]") {
  constexpr std::int64_t kColumns = 6;
  for (const std::int64_t rows : {1, 63, 64, 65, 127, 128, 129, 1000, 4097, 20011}) {
    Tensor x = test::random_tensor({rows, kColumns}, 1);
    for (float& v : x.data) v *= v * v;  // more bits, so that the order of additions shows
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      const std::vector<double> sums = column_sums(x.data.data(), rows, kColumns);
      for (std::int64_t c = 0; c < kColumns; ++c) {
        const double expected =
            pairwise_sum(rows, [&](std::int64_t r) { return double{x.data[r * kColumns + c]}; });
        CHECK(sums[c] == expected);
      }
    }
  }
  omp_set_num_threads(omp_get_num_procs());
}

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

TEST_CASE("axis_sums is the pairwise sum of each place's elements in order", "[fast]") {
  const Shape shape{5, 1, 17, 9};
  Tensor x = test::random_tensor(shape, 1);
  for (float& v : x.data) v = v * v * v * 1e10f;  // so that the order of additions shows
  const std::int64_t strides[] = {153, 153, 9, 1};
  for (int pattern = 0; pattern < 16; ++pattern) {
    std::vector<bool> summed;
    for (int a = 0; a < 4; ++a) summed.push_back((pattern >> a & 1) != 0);
    std::int64_t places = 1;
    for (int a = 0; a < 4; ++a) places *= summed[a] ? 1 : shape[a];
    std::vector<std::vector<float>> lines(static_cast<std::size_t>(places));
    for (std::int64_t i = 0; i < x.size(); ++i) {
      std::int64_t place = 0;
      for (int a = 0; a < 4; ++a)
        if (!summed[a]) place = place * shape[a] + i / strides[a] % shape[a];
      lines[place].push_back(x.data[i]);
    }
    std::vector<double> expected;
    for (const std::vector<float>& line : lines) {
      expected.push_back(pairwise_sum(static_cast<std::int64_t>(line.size()),
                                      [&](std::int64_t i) { return line[i]; }));
    }
    CAPTURE(pattern);
    CHECK(axis_sums(x.data.data(), shape, summed) == expected);
  }
}

TEST_CASE("axis_sums of nothing is zero", "[fast]") {
  CHECK(axis_sums(nullptr, {2, 0}, {false, true}) == std::vector<double>{0, 0});
  CHECK(axis_sums(nullptr, {2, 0}, {true, false}).empty());
}

TEST_CASE("sum_to sums over the axes that were repeated", "[fast]") {
  Tensor x({2, 2, 3});
  for (int i = 0; i < 12; ++i) x.data[i] = static_cast<float>(i);
  Tensor row({3}), column({2, 1}), one{Shape{}}, same({2, 2, 3});
  sum_to(x, row);
  sum_to(x, column);
  sum_to(x, one);
  sum_to(x, same);
  CHECK(row.data == std::vector<float>{18, 22, 26});
  CHECK(column.data == std::vector<float>{24, 42});
  CHECK(one.data == std::vector<float>{66});
  CHECK(same.data == x.data);
}

}  // namespace

}  // namespace numemu::net::sums_test
