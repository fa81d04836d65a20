// The eight mask types: vectors of the specification, exact shares, what is refused.
#include <numeric>
#include <string>

#include "policies/zap/predictor.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace position_mask_test {

using namespace numemu;
using namespace numemu::policies;
using numemu::test::message_of;

namespace {

std::string rows_of(const PositionMask& mask) {
  std::string rows;
  for (std::int64_t y = 0; y < mask.height; ++y) {
    if (y > 0) rows += '/';
    for (std::int64_t x = 0; x < mask.width; ++x)
      rows += mask.computed[static_cast<std::size_t>(y * mask.width + x)] != 0 ? '1' : '0';
  }
  return rows;
}

}  // namespace

TEST_CASE("masks of the specification on 4 x 4", "[fast]") {
  CHECK(rows_of(position_mask(5, 4, 4)) == "1010/0101/1010/0101");
  CHECK(rows_of(position_mask(8, 4, 4)) == "1111/1010/1111/1010");
}

TEST_CASE("the skipped positions of types 6, 7, 9 and 10 as listed", "[fast]") {
  CHECK(rows_of(position_mask(6, 5, 5)) == "11010/10101/01011/10110/01101");
  CHECK(rows_of(position_mask(7, 3, 3)) == "110/101/011");
  CHECK(rows_of(position_mask(9, 3, 3)) == "111/101/011");
  CHECK(rows_of(position_mask(10, 3, 3)) == "111/101/111");
}

TEST_CASE("shares of computed positions on 30 x 30", "[fast]") {
  constexpr std::int64_t kOnes[] = {300, 360, 450, 540, 600, 675, 700, 800};
  for (int type = kLeastMaskType; type <= kLargestMaskType; ++type) {
    const PositionMask mask = position_mask(type, 30, 30);
    const std::int64_t ones = kOnes[type - kLeastMaskType];
    CHECK(mask.type == type);
    CHECK(mask.positions() == 900);
    CHECK(std::accumulate(mask.computed.begin(), mask.computed.end(), std::int64_t{0}) == ones);
    const MaskShare share = mask_share(type);
    CHECK(share.computed * 900 == ones * share.of);
  }
  CHECK(mask_share(4).value() == 0.4);
}

TEST_CASE("types 3 and 4 are the complements of 7 and 6, on any map", "[fast]") {
  const PositionMask third = position_mask(3, 7, 11), rest = position_mask(7, 7, 11);
  const PositionMask two_fifths = position_mask(4, 7, 11), three = position_mask(6, 7, 11);
  for (std::size_t i = 0; i < third.computed.size(); ++i) {
    CHECK(third.computed[i] + rest.computed[i] == 1);
    CHECK(two_fifths.computed[i] + three.computed[i] == 1);
  }
}

TEST_CASE("masks that are refused", "[fast]") {
  CHECK_THAT(message_of([] { position_mask(2, 4, 4); }), Catch::Contains("from 3 to 10, got 2"));
  CHECK_THAT(message_of([] { mask_share(11); }), Catch::Contains("from 3 to 10, got 11"));
  CHECK_THAT(message_of([] { position_mask(5, 0, 4); }), Catch::Contains("got 0 x 4"));
}

}  // namespace position_mask_test
