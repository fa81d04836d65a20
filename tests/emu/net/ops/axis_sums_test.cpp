// Sums over axes: exact on integers, the pairwise tree of each line bit for bit.
#include "emu/net/ops/axis_sums.hpp"

#include "formats/portable/pairwise.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

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
}  // namespace numemu::net
