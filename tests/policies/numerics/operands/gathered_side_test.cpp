// Gathered operands: tiles of at most 1 MiB give the bits of the whole.
#include "policies/numerics/operands/gathered_side.hpp"

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace gathered_side_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("tiles are quantized as the whole gathered operand", "[fast]") {
  // Every row reads the same 700 numbers in its own order: larger than its source.
  const std::int64_t rows = 800, k = 700;
  const net::Tensor x = noise({k}, 1);
  unit::Gather gather;
  gather.padding.channels = k;
  for (std::int64_t r = 0; r < rows; ++r) gather.row.push_back(0);
  for (std::int64_t d = 0; d < k; ++d)
    gather.depth.push_back(static_cast<std::int32_t>(d < 300 ? d + 400 : d - 300));
  net::Product p;
  p.m = rows;
  p.k = k;
  p.a = {&x, &gather, net::Role::activation, {.width = k}};
  const RoleQuantizer quantizer(block_policy("mxfp4", BlockAxis::reduction, "sr(8)"));
  const RandomPiece random{{.seed = 3}, 5 * k};
  GatheredSide side(quantizer, p, net::Side::a, random, 1, false);
  const std::int64_t at_once = side.rows_at_once();
  REQUIRE(at_once < rows);
  CHECK(at_once * k * 4 <= 1 << 20);
  const std::vector<float> whole =
      gathered(p.a, 0, rows, k, 0.0f, [&](std::int64_t i) { return x.data[i]; });
  std::vector<float> expected(whole.size());
  const FlagCounts flags = quantizer
                               .quantize(block_layout(find_block_format("mxfp4"), {rows, k}, 1),
                                         whole.data(), random, {}, expected.data())
                               .elements;
  std::int64_t wrong = 0;
  for (int pass = 0; pass < 2; ++pass) {  // counted once
    for (std::int64_t r = 0; r < rows; r += at_once) {
      const std::int64_t end = std::min(rows, r + at_once);
      const OperandRows tile = side.rows(0, r, end);
      const auto* y = static_cast<const float*>(tile.operand.codes);
      for (std::int64_t i = 0; i < (end - r) * k; ++i) wrong += y[i] != expected[r * k + i];
    }
  }
  CHECK(wrong == 0);
  CHECK(side.flags() == flags);
  CHECK(side.scales().none());
}

}  // namespace gathered_side_test
