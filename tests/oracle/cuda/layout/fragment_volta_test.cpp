// The quad-pair fragments of mma.m8n8k4: each element is held once by each product's lanes, where
// CuTe's layouts say.
#include "tests/oracle/cuda/layout/fragment_volta.hpp"

#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::fragment_volta_test {
namespace {

using Layout = QuadPairLayout;

const Instruction& find(const char* name) {
  const int at = find_instruction("mma", name);
  INFO(name);
  REQUIRE(at >= 0);
  return instructions()[static_cast<std::size_t>(at)];
}

// Facts of CuTe, mma_traits_sm70.hpp. Thread 0..7 of a quad pair: lane (4,2):(1,16).
int lane_of(int product, int thread) { return 4 * product + thread % 4 + 16 * (thread / 4); }
// SM70_8x4_Row (8,4):(1,8), SM70_8x8_16b (8,8):(1,8): thread + 8 value.
int by_rows(int thread, int value) { return thread + 8 * value; }
// SM70_8x8_32b ((2,2,2),(2,2,2)):((1,16,4),(8,2,32)).
int by_quarters(int thread, int value) {
  return thread % 2 + thread / 2 % 2 * 16 + thread / 4 * 4 + value % 2 * 8 + value / 2 % 2 * 2 +
         value / 4 * 32;
}

}  // namespace

TEST_CASE("quad-pair fragments are where CuTe's layouts say", "[fast]") {
  for (int product = 0; product < 4; ++product)
    for (int thread = 0; thread < 8; ++thread) {
      const int lane = lane_of(product, thread);
      INFO("lane " << lane);
      REQUIRE(Layout::product(lane) == product);
      for (int r = 0; r < 2; ++r)
        for (int s = 0; s < 2; ++s) {
          const Place a = Layout::a_place(lane, r, s);
          REQUIRE(a.row + 8 * a.column == by_rows(thread, 2 * r + s));
          const Place b = Layout::b_place(lane, r, s);
          REQUIRE(b.column + 8 * b.row == by_rows(thread, 2 * r + s));
        }
      for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 2; ++s) {
          const Place c = Layout::c_place(Element::f16, lane, r, s);
          REQUIRE(c.row + 8 * c.column == by_rows(thread, 2 * r + s));
        }
      for (int r = 0; r < 8; ++r) {
        const Place c = Layout::c_place(Element::f32, lane, r, 0);
        REQUIRE(c.row + 8 * c.column == by_quarters(thread, r));
      }
    }
}

TEST_CASE("each product of a quad pair holds each element once", "[fast]") {
  for (int product = 0; product < 4; ++product) {
    std::set<std::pair<int, int>> a, b, half, single;
    for (int lane = 0; lane < 32; ++lane) {
      if (Layout::product(lane) != product) continue;
      const auto add = [](auto& places, Place at) {
        REQUIRE(places.insert({at.row, at.column}).second);
      };
      for (int v = 0; v < 4; ++v) add(a, Layout::a_place(lane, v / 2, v % 2));
      for (int v = 0; v < 4; ++v) add(b, Layout::b_place(lane, v / 2, v % 2));
      for (int v = 0; v < 8; ++v) add(half, Layout::c_place(Element::f16, lane, v / 2, v % 2));
      for (int v = 0; v < 8; ++v) add(single, Layout::c_place(Element::f32, lane, v, 0));
    }
    REQUIRE(a.size() == 32);
    REQUIRE(b.size() == 32);
    REQUIRE(half.size() == 64);
    REQUIRE(single.size() == 64);
    REQUIRE(a.rbegin()->first == 7);
    REQUIRE(b.rbegin()->first == 3);
    REQUIRE(*half.rbegin() == std::make_pair(7, 7));
    REQUIRE(*single.rbegin() == std::make_pair(7, 7));
  }
}

TEST_CASE("the first product scatters into D what it gathers of C", "[fast]") {
  for (const char* const name : {"m8n8k4.f32.f16.f16.f32", "m8n8k4.f16.f16.f16.f16"}) {
    const Instruction& i = find(name);
    std::vector<std::uint8_t> c(tile_bytes(i).c);
    for (std::size_t n = 0; n < c.size(); ++n) c[n] = static_cast<std::uint8_t>(n * 37 + 11);
    std::vector<std::uint8_t> d(tile_bytes(i).d);
    for (int lane = 31; lane >= 0; --lane) {
      const std::vector<std::uint8_t> before = d;
      for (int r = 0; r < Layout::c_registers(i, i.c); ++r)
        Layout::scatter_d(i, d.data(), lane, r, Layout::gather_c(i, c.data(), lane, r));
      REQUIRE((d == before) == (Layout::product(lane) != 0));
    }
    REQUIRE(d == c);
  }
}

// A is stored by rows and B by columns, each with k fastest: a lane's four codes are in a row.
TEST_CASE("a lane gathers four consecutive k of A and of B", "[fast]") {
  const Instruction& i = find("m8n8k4.f32.f16.f16.f32");
  std::vector<std::uint8_t> codes(64);
  for (std::size_t n = 0; n < codes.size(); ++n) codes[n] = static_cast<std::uint8_t>(n);
  for (int lane = 0; lane < 32; ++lane) {
    const auto line = static_cast<std::uint64_t>(lane % 4 + (lane < 16 ? 0 : 4));
    for (int r = 0; r < 2; ++r) {
      const std::uint64_t first = 8 * line + 4 * static_cast<std::uint64_t>(r);
      const std::uint64_t expected = first * 0x01010101U + 0x03020100U;
      REQUIRE(Layout::gather_a(i, codes.data(), lane, r) == expected);
      REQUIRE(Layout::gather_b(i, codes.data(), lane, r) == expected);
    }
  }
}

}  // namespace numemu::oracle::recording::fragment_volta_test
