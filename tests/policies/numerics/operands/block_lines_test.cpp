// Blocks along the width of a source, or along its rows, against layouts of the source itself.
#include "policies/numerics/operands/block_lines.hpp"

#include <array>

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace block_lines_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

Lines lines_of(const net::ProductSide& side) {
  net::Product p;
  p.a = side;
  return {p, net::Side::a};
}

}  // namespace

TEST_CASE("lines are the width of a stack or its rows", "[fast]") {
  const net::Tensor x = noise({2, 37, 3, 5}, 1);
  const RoleQuantizer quantizer(block_policy("mxfp4"));
  for (const bool along_rows : {false, true}) {
    net::ProductSide side{
        &x, nullptr, net::Role::activation, {.outer = 2, .inner = 3, .width = 5}, along_rows};
    const BlockLayout layout =
        block_layout(find_block_format("mxfp4"), {2, 37, 3, 5}, along_rows ? 1 : 3);
    std::vector<float> expected(x.data.size()), y;
    std::vector<std::uint8_t> codes(x.data.size());
    const FlagCounts flags =
        quantizer.quantize(layout, x.data.data(), {}, {.codes = codes.data()}, expected.data())
            .elements;
    CHECK(quantize_lines(quantizer, side, lines_of(side), {}, 1, y) == flags);
    CHECK(differences(y, expected) == 0);
    LineCodes lines;
    CHECK(quantize_lines(quantizer, side, lines_of(side), {}, 1, lines) == flags);
    const Lines cut = lines_of(side);
    CHECK(cut.length == (along_rows ? 37 : 5));
    CHECK(lines.scales.size() == static_cast<std::size_t>(cut.lines * (along_rows ? 2 : 1)));
    std::int64_t wrong = 0;
    for (std::int64_t o = 0; o < 2; ++o) {
      for (std::int64_t r = 0; r < 37; ++r) {
        for (std::int64_t c = 0; c < 15; ++c) {
          const std::int64_t source = (o * 37 + r) * 15 + c;
          wrong += lines.codes[along_rows ? (o * 15 + c) * 37 + r : source] != codes[source];
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("samples have tensor scales of their own", "[fast]") {
  net::Tensor x = noise({2, 4, 16}, 1);
  for (std::int64_t i = 64; i < 128; ++i) x.data[i] *= 4096;
  const RoleQuantizer quantizer(block_policy("nvfp4"));
  const net::ProductSide side{&x, nullptr, net::Role::activation, {.width = 16}};
  LineCodes lines;
  quantize_lines(quantizer, side, lines_of(side), {}, 2, lines);
  REQUIRE(lines.tensor_scales.size() == 2);
  CHECK(lines.tensor_scales[1] > 1000 * lines.tensor_scales[0]);
}

TEST_CASE("groups of a convolution share blocks, heads of attention have their own", "[fast]") {
  const net::Tensor x = noise({4, 24}, 1);
  net::Product p;
  p.a = {&x, nullptr, net::Role::activation, {.inner = 24, .width = 1}};
  p.b.role = net::Role::weight;
  CHECK(Lines(p, net::Side::a).length == 24);
  p.b.role = net::Role::activation;
  CHECK(Lines(p, net::Side::a).length == 1);
}

}  // namespace block_lines_test
