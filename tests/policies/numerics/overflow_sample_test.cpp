// Sums that leave a register's range on the way, of results that are computed again.
#include "policies/numerics/overflow_sample.hpp"

#include <vector>

#include "formats/format.hpp"
#include "tests/catch.hpp"

namespace overflow_sample_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// Rows of A, each times a column of ones: numbers of int8, or of float32.
template <class T>
SaturationCounts counts(const std::string& unit, const std::vector<std::vector<T>>& rows,
                        std::int64_t draw = 0) {
  const auto m = std::ssize(rows), k = std::ssize(rows[0]);
  std::vector<T> a, b(static_cast<std::size_t>(k), 1);
  for (const auto& row : rows) a.insert(a.end(), row.begin(), row.end());
  const unit::Gather of_a = unit::Gather::matrix(m, k), of_b = unit::Gather::matrix(1, k);
  const Format& format = find_format(sizeof(T) == 1 ? "int8" : "float32");
  std::vector<double> d(static_cast<std::size_t>(m));  // no element of D is larger
  const OverflowSample sample(unit::find_unit(unit), draw);
  sample.multiply({.m = m,
                   .n = 1,
                   .k = k,
                   .a = {&format, a.data(), &of_a},
                   .b = {&format, b.data(), &of_b},
                   .d = d.data()});
  return sample.counts();
}

using Bytes = std::vector<std::int8_t>;
using Floats = std::vector<float>;

}  // namespace

TEST_CASE("overflow sample: saturation that is left again, stops and wraps", "[fast]") {
  const Bytes back = {100, 100, -127, 0}, fits = {100, 27, -127, 1}, wraps = {100, 100, 0, 0};
  CHECK(counts<std::int8_t>("neutral.mac.int8.saturate", {back, fits}).overflowed == 1);
  // A sum that wraps and comes back is right.
  CHECK(counts<std::int8_t>("neutral.mac.int8.wrap", {back, fits, wraps}).overflowed == 1);
  CHECK(counts<std::int8_t>("neutral.mac.int8.wrap", {back, fits}).sampled == 2);
  CHECK(counts<std::int8_t>("neutral.mac.int32.saturate", {back}).overflowed == 0);
  const Floats far = {65504, 65504, -65504, 0}, end = {65504, 0, 0, 0};
  CHECK(counts<float>("neutral.mac.float16.rtz", {far, end}).overflowed == 1);
  CHECK(counts<float>("neutral.mac.float16.rne.saturate", {far, end}).overflowed == 1);
  // Infinities tell of themselves.
  CHECK(counts<float>("neutral.mac.float16.rne", {far, end}).sampled == 0);
  CHECK(counts<float>("exact", {far}).sampled == 0);
}

TEST_CASE("overflow sample: words and shares", "[fast]") {
  const auto words = [](const char* unit) {
    return std::string(overflow_words(*unit::find_unit(unit).description()));
  };
  CHECK(words("neutral.mac.int8.saturate") == "saturated on the way");
  CHECK(words("neutral.mac.float16.rtz") == "saturated on the way");
  CHECK(words("neutral.mac.int8.wrap") == "wrapped");
  CHECK(words("neutral.mac.float16.rne") == kNotFiniteWords);
  CHECK(counted_share(36, 112) == "32.1 % of 112");
  CHECK(counted_share(0, 112) == "0 of 112");
  CHECK(counted_share(8, 8) == "100 % of 8");
}

TEST_CASE("overflow sample: a few lines of many, and none where no sum reaches the end", "[fast]") {
  const std::vector<Bytes> many(1000, {100, 100});
  const SaturationCounts some = counts("neutral.mac.int8.saturate", many);
  CHECK(some.sampled == OverflowSample::kSampledResults);
  CHECK(some.overflowed == some.sampled);
  CHECK(some.share() == 1);
  const OverflowSample int8(unit::find_unit("neutral.mac.int32.wrap"));
  const std::vector<std::uint8_t> codes(16, 0x7f);
  const unit::Gather lines = unit::Gather::matrix(4, 4);
  std::vector<std::int32_t> d(16);
  const unit::Operand operand{&find_format("int8"), codes.data(), &lines};
  int8.multiply({.m = 4, .n = 4, .k = 4, .a = operand, .b = operand, .d = d.data()});
  CHECK(int8.counts().sampled == 0);
}

TEST_CASE("overflow sample: the share is that of the sample where it tells more than chance does",
          "[fast]") {
  const auto share = [](std::int64_t at_end, std::int64_t overflowed) {
    return SaturationCounts{
        .results = 10'000, .at_end = at_end, .sampled = 400, .overflowed = overflowed}
        .share();
  };
  CHECK(share(100, 1) == 0.01);
  CHECK(share(100, 3) == 0.01);  // 3 - 2 sqrt(3) < 4
  CHECK(share(100, 16) == 0.04);
  CHECK(share(0, 1) == 0.0025);  // what was seen is never 0
}

TEST_CASE("overflow sample: results lie anywhere in an image, elsewhere in every batch", "[fast]") {
  // Four images of 256 pixels, of which only the first does not overflow.
  std::vector<Bytes> images(1024, {100, 100});
  for (std::size_t first = 0; first < images.size(); first += 256) images[first] = {0, 0};
  CHECK(counts("neutral.mac.int8.saturate", images).share() == 1);
  // Half of the columns of each row, the left ones, overflow.
  std::vector<Bytes> halves(1024, {100, 100});
  for (std::size_t i = 0; i < halves.size(); ++i)
    if (i % 32 >= 16) halves[i] = {0, 0};
  std::int64_t overflowed = 0, sampled = 0;
  for (std::int64_t batch = 0; batch < 20; ++batch) {
    const SaturationCounts own = counts("neutral.mac.int8.saturate", halves, batch);
    overflowed += own.overflowed;
    sampled += own.sampled;
  }
  CHECK(sampled == 20 * OverflowSample::kSampledResults);
  // Independent places would lie within 0.14 in all but one of two million cases.
  CHECK(overflowed > sampled * 36 / 100);
  CHECK(overflowed < sampled * 64 / 100);
}

TEST_CASE("overflow sample: borders and distances are zeros", "[fast]") {
  // One row of 3 pixels, one apart, with a border of 1: 0 100 0 100 0 100 0.
  unit::Gather gather;
  gather.padding = {.width = 3, .left = 1, .padded_width = 7, .dilation = 2, .dilation_height = 1};
  gather.row = {0, 1, 2, 3};  // sums of 3 neighbours: 100, 200, 100, 200
  gather.depth = {0, 1, 2};
  const unit::Gather ones = unit::Gather::matrix(1, 3);
  const std::vector<std::uint8_t> a = {100, 100, 100}, b = {1, 1, 1};
  const Format& format = find_format("int8");
  std::vector<std::int8_t> d(4);
  const OverflowSample sample(unit::find_unit("neutral.mac.int8.saturate"));
  sample.multiply({.m = 4,
                   .n = 1,
                   .k = 3,
                   .a = {&format, a.data(), &gather},
                   .b = {&format, b.data(), &ones},
                   .d = d.data()});
  CHECK(d == std::vector<std::int8_t>{100, 127, 100, 127});
  CHECK(sample.counts().sampled == 4);
  CHECK(sample.counts().overflowed == 2);
}

}  // namespace overflow_sample_test
