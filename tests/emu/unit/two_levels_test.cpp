// Products of units with two levels of accumulation: covered, and equal to the reference.
#include "emu/unit/two_levels.hpp"

#include "emu/unit/description/words.hpp"
#include "emu/unit/fast_paths.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/description/samples.hpp"

namespace two_levels_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

/// A unit of the catalogue with sums of `every` products, in an outer register.
UnitDescription promoted(const char* name, int every, const char* outer) {
  UnitDescription u = *find_unit(name).description();
  u.name = "own";
  u.outer = {every, {.format = outer == nullptr ? nullptr : format(outer)}};
  if (outer != nullptr) {
    u.c = u.d = u.outer.accumulator.format;
    u.nan_code = u.d->nan_code();
  }
  check_description(u);
  return u;
}

/// Every kind of data: covered where it is said to be, and the reference's bits.
void check_equal(const UnitDescription& u, std::int64_t k, bool covered = true,
                 const char* any = "float8_e4m3fn") {
  const auto unit = make_unit(u);
  for (const Data data : kAllData) {
    for (const bool with_c : {false, true}) {
      AnyProduct product(*unit, 5, 7, k, data, 3, with_c, any);
      INFO(description_code(u) << " K " << k << " data " << static_cast<int>(data));
      CHECK(product.mismatches() == 0);
      if (data == Data::moderate) CHECK(multiply_fast(u, product.gemm()) == covered);
    }
  }
}

}  // namespace

TEST_CASE("two levels: FP8 sums promoted to float32 and other registers", "[fast]") {
  for (const std::int64_t k : {1, 128, 300}) {
    check_equal(promoted("nvidia.h100.wgmma.e4m3.f32", 128, "float32"), k);
    check_equal(promoted("nvidia.h100.wgmma.e4m3.f16", 64, "float32"), k);
  }
  check_equal(promoted("nvidia.h100.wgmma.f16.f32", 32, "float64"), 100);
  check_equal(promoted("nvidia.h100.mma.e4m3xe5m2.f32", 32, "float32"), 70);
  check_equal(promoted("neutral.exact", 16, "float16"), 40);
  check_equal(promoted("neutral.f32.sequential", 16, "float32"), 40);
  check_equal(promoted("neutral.mac.hfp16_e6m9", 8, "float32"), 20);
  check_equal(promoted("intel.emr.vpdpbusds.u8xs8.s32", 4, nullptr), 18);
}

TEST_CASE("two levels: outer roundings, overflows and flushes", "[fast]") {
  UnitDescription u = promoted("nvidia.h100.wgmma.e5m2.f32", 32, "float32");
  for (const RoundingMode rounding : {RoundingMode::rtz, RoundingMode::rup, RoundingMode::rodd}) {
    u.outer.accumulator.rounding = {.mode = rounding};
    check_equal(u, 96);
  }
  u.outer.accumulator = {.format = format("float8_e4m3fn"), .overflow = Overflow::saturate};
  u.c = u.d = u.outer.accumulator.format;
  u.nan_code = 0x7f;
  check_equal(u, 96);
  u = promoted("neutral.f32.sequential", 16, "float32");
  u.subnormals.flush_results = u.subnormals.flush_c = true;
  check_equal(u, 40,
              multiply_fast(u, AnyProduct(*make_unit(u), 1, 1, 4, Data::moderate, 1).gemm()));
}

TEST_CASE("two levels: block scales, and what is left to the reference", "[fast]") {
  check_equal(promoted("nvidia.b200.tcgen05.e4m3.f32.mx32", 64, "float32"), 160);
  check_equal(promoted("nvidia.b200.tcgen05.e2m1.f32.nv16", 64, "float32"), 160);
  check_equal(promoted("neutral.mac.e5m10.sr8", 16, "float32"), 40, false);
  UnitDescription sparse = promoted("nvidia.h100.wgmma.e4m3.f32", 32, "float32");
  sparse.sparsity = {2, 4};
  check_equal(sparse, 128, false);
  UnitDescription straddling = promoted("neutral.exact.mx32", 16, "float32");
  check_equal(straddling, 64, false);
}

TEST_CASE("two levels: operands with a border", "[fast]") {
  const UnitDescription u = promoted("nvidia.h100.wgmma.e4m3.f32", 32, "float32");
  // A 3 x 3 window over a padded 4 x 4 image of 8 channels.
  constexpr std::int64_t kSide = 4, kChannels = 8, kK = 9 * kChannels;
  Gather a;
  a.padding = {.height = kSide,
               .width = kSide,
               .channels = kChannels,
               .top = 1,
               .left = 1,
               .padded_height = kSide + 2,
               .padded_width = kSide + 2};
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) a.row.push_back((y * (kSide + 2) + x) * kChannels);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 3; ++x)
      for (int c = 0; c < kChannels; ++c)
        a.depth.push_back((y * (static_cast<int>(kSide) + 2) + x) * kChannels + c);
  const Gather b = Gather::matrix(5, kK);
  std::vector<std::uint8_t> image(kSide * kSide * kChannels), weights(5 * kK);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 37 % 126);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<std::uint8_t>(i * 91 % 126 + i % 2 * 128);
  std::vector<float> fast(16 * 5), reference(16 * 5);
  Gemm g;
  g.m = 16;
  g.n = 5;
  g.k = kK;
  g.a = {format("float8_e4m3fn"), image.data(), &a};
  g.b = {format("float8_e4m3fn"), weights.data(), &b};
  const auto unit = make_unit(u);
  g.d = fast.data();
  CHECK(multiply_fast(u, g));
  g.d = reference.data();
  unit->multiply_reference(g);
  CHECK(fast == reference);
}

}  // namespace two_levels_test
