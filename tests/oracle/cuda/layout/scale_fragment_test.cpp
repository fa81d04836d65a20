// Scales of mma.sync: every one reaches the lane and the byte that the unit reads.
#include "tests/oracle/cuda/layout/scale_fragment.hpp"

#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::scale_fragment_test {
namespace {

/// A CuTe layout with its modes laid flat: the first counts fastest.
int at(const std::vector<std::pair<int, int>>& shape_and_stride, int index) {
  int offset = 0;
  for (const auto& [shape, stride] : shape_and_stride) {
    offset += index % shape * stride;
    index /= shape;
  }
  return offset;
}

/// CuTe mma_traits_sm120.hpp: SFALayout (T32,V) -> (M16,K), SFBLayout (T32,V) -> (N8,K).
int cute_row_of_a(int lane) { return at({{2, 8}, {2, 0}, {8, 1}}, lane); }
int cute_column_of_b(int lane) { return at({{4, 0}, {8, 1}}, lane); }

std::vector<Instruction> scaled() {
  std::vector<Instruction> rows;
  for (const Instruction& i : instructions())
    if (i.kind == Kind::mmabs) rows.push_back(i);
  return rows;
}

}  // namespace

TEST_CASE("lanes give the scales of the rows and columns that CuTe gives them", "[fast]") {
  for (int lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(scale_a_row(lane) == cute_row_of_a(lane));
    CHECK(scale_b_column(lane) == cute_column_of_b(lane));
  }
}

TEST_CASE("whichever lanes a selector names give each row and each column once", "[fast]") {
  for (int pair = 0; pair < 2; ++pair) {  // thread-id-a: lanes 2 pair and 2 pair + 1 of each quad
    std::multiset<int> rows;
    for (int lane = 0; lane < 32; ++lane)
      if (lane % 4 / 2 == pair) rows.insert(scale_a_row(lane));
    CHECK(rows.size() == 16);
    for (int row = 0; row < 16; ++row) CHECK(rows.count(row) == 1);
  }
  for (int thread = 0; thread < 4; ++thread) {  // thread-id-b
    std::multiset<int> columns;
    for (int lane = thread; lane < 32; lane += 4) columns.insert(scale_b_column(lane));
    CHECK(columns.size() == 8);
    for (int column = 0; column < 8; ++column) CHECK(columns.count(column) == 1);
  }
}

TEST_CASE("byte-id b, in its steps, names the scales of a row in the order of K", "[fast]") {
  REQUIRE(!scaled().empty());
  for (const Instruction& i : scaled()) {
    CAPTURE(name(i));
    const int scales = i.k / i.block;  // PTX ISA: 1, 2 and 4 for scale_vec 1X, 2X and 4X
    REQUIRE((scales == 1 || scales == 2 || scales == 4));
    std::vector<std::uint8_t> a, b;
    for (int n = 0; n < 16 * scales; ++n) a.push_back(static_cast<std::uint8_t>(1 + n));
    for (int n = 0; n < 8 * scales; ++n) b.push_back(static_cast<std::uint8_t>(101 + n));
    for (int lane = 0; lane < 32; ++lane) {
      const std::uint32_t of_a = gather_scale_a(i, a.data(), lane);
      const std::uint32_t of_b = gather_scale_b(i, b.data(), lane);
      for (int byte = 0; byte < 4; ++byte) {
        CAPTURE(lane, byte);
        CHECK((of_a >> (8 * byte) & 255) ==
              static_cast<unsigned>(1 + cute_row_of_a(lane) * scales + byte % scales));
        CHECK((of_b >> (8 * byte) & 255) ==
              static_cast<unsigned>(101 + cute_column_of_b(lane) * scales + byte % scales));
      }
    }
  }
}

}  // namespace numemu::oracle::recording::scale_fragment_test
