// Gathers of whole blocks: what they reach, and what they refuse.
#include "policies/numerics/operands/scaled_side.hpp"

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace scaled_side_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

net::Product right(const net::ProductSide& side) {
  net::Product p;
  p.b = side;
  return p;
}

}  // namespace

TEST_CASE("lines are padded to whole blocks inside each tap", "[fast]") {
  // Weights [2 outputs, 3 taps, 20 channels].
  const net::Tensor w = noise({2, 3, 20}, 1);
  const unit::Gather g = unit::Gather::matrix(2, 60);
  const net::ProductSide side{&w, &g, net::Role::weight, {.width = 20}};
  const auto gather = scaled_gather(right(side), net::Side::b, 16);
  REQUIRE(gather.has_value());
  CHECK(gather->padded == 32);
  CHECK(gather->depth() == 96);
  CHECK(gather->blocks_of_line() == 2);
  net::Product p;
  p.n = 2;
  p.k = 60;
  p.b = side;
  const RoleQuantizer quantizer(block_policy("nvfp4"));
  ScaledSide scaled(quantizer, p, net::Side::b, *gather, {}, 1);
  const OperandRows rows = scaled.rows(0, 0, 2);
  std::vector<std::uint8_t> codes(120), scales(12);
  float tensor_scale = 0;
  quantizer.quantize(
      block_layout(find_block_format("nvfp4"), {6, 20}, 1), w.data.data(), {},
      {.codes = codes.data(), .scales = scales.data(), .tensor_scale = &tensor_scale}, nullptr);
  const auto* padded = static_cast<const std::uint8_t*>(rows.operand.codes);
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t k = 0; k < 96; ++k) {
      const std::int64_t channel = k % 32, line = r * 3 + k / 32;
      const std::uint8_t code = padded[rows.operand.gather->row[r] + rows.operand.gather->depth[k]];
      wrong += code != (channel < 20 ? codes[line * 20 + channel] : 0);
      wrong += rows.scales[r * 6 + k / 16] != scales[line * 2 + channel / 16];
    }
  }
  CHECK(wrong == 0);
  CHECK(scaled.scales().values == std::vector<float>{tensor_scale});
  CHECK(scaled.flags().elements == 120);
}

TEST_CASE("operands that read parts of lines have no such gather", "[fast]") {
  const net::Tensor x = noise({4, 8}, 1);
  unit::Gather g = unit::Gather::matrix(4, 8);
  net::ProductSide side{&x, &g, net::Role::activation, {.width = 8}};
  CHECK(scaled_gather(right(side), net::Side::b, 16).has_value());
  std::swap(g.depth[2], g.depth[3]);
  CHECK_FALSE(scaled_gather(right(side), net::Side::b, 16).has_value());
  g = unit::Gather::matrix(4, 8);
  g.row[1] = 3;
  CHECK_FALSE(scaled_gather(right(side), net::Side::b, 16).has_value());
  // Along the rows: the transposed matrix.
  g = unit::Gather::matrix(8, 4, true);
  side.along_rows = true;
  const auto transposed = scaled_gather(right(side), net::Side::b, 16);
  REQUIRE(transposed.has_value());
  CHECK(transposed->length == 4);
  CHECK(transposed->depth() == 16);
}

}  // namespace scaled_side_test
