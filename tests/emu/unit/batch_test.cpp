// Batches: every stacking gives the bits of the reference and of the products one by one.
#include "emu/unit/batch.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/register.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"

namespace batch_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;
using Catch::Contains;

namespace {

/// `count` products of m x n x k whose operands are rows and columns of one large product.
struct BatchCase {
  AnyProduct product;
  Gather a, b;
  Batch batch;

  BatchCase(const Unit& unit, std::int64_t count, std::int64_t m, std::int64_t n, std::int64_t k,
            Data data, bool a_shared = false, bool b_shared = false, bool c_shared = false)
      : product(unit, count * m, count * n, k, data, 5) {
    batch.first = product.gemm();
    const auto depth = static_cast<std::int64_t>(batch.first.a.gather->depth.size());
    a = Gather::matrix(m, depth);
    b = Gather::matrix(n, k);
    batch.first.m = m;
    batch.first.n = n;
    batch.first.a.gather = &a;
    batch.first.b.gather = &b;
    batch.count = count;
    batch.a_stride = a_shared ? 0 : m * depth;
    batch.b_stride = b_shared ? 0 : n * k;
    batch.c_shared = c_shared;
  }
  BatchCase(const BatchCase&) = delete;

  template <class Run>
  std::vector<std::uint8_t> result(const Unit& unit, const Run& run) {
    const int bytes = bytes_of(unit.d_format(), unit.description()->accumulator);
    std::vector<std::uint8_t> d(static_cast<std::size_t>(batch.outputs() * bytes), 0xaa);
    batch.first.d = d.data();
    run();
    return d;
  }
};

}  // namespace

TEST_CASE("batch: fast, reference and one by one agree for every way to share", "[fast]") {
  for (const char* name :
       {"nvidia.h100.wgmma.e4m3.f32", "nvidia.h100.mma.e4m3.f16", "nvidia.a100.mma.s8.s32",
        "nvidia.h100.wgmma.e4m3.f32.sp24", "nvidia.b200.tcgen05.e4m3.f32.mx32",
        "neutral.f32.sequential", "nvidia.a100.mma.f64.f64"}) {
    const Unit& unit = find_unit(name);
    for (const auto& [m, n] : {std::pair(1, 1), {3, 2}, {17, 2}}) {
      for (int share = 0; share < 8; ++share) {
        INFO(name << " " << m << " x " << n << " share " << share);
        BatchCase c(unit, 5, m, n, 32, share % 2 == 0 ? Data::wide : Data::codes, (share & 1) != 0,
                    (share & 2) != 0, (share & 4) != 0);
        const auto fast = c.result(unit, [&] { multiply_batch(unit, c.batch); });
        const auto reference = c.result(unit, [&] { multiply_batch_reference(unit, c.batch); });
        const auto single = c.result(unit, [&] {
          for (int p = 0; p < 5; ++p) unit.multiply_reference(slice(unit, c.batch, p, p + 1).first);
        });
        CHECK((fast == reference));
        CHECK((single == reference));
      }
    }
  }
}

TEST_CASE("batch: stacks with NaN and infinity, of every width of code", "[fast]") {
  for (const char* name :
       {"nvidia.h100.wgmma.e5m2.f32", "amd.mi300.mfma.e4m3fnuz.f32", "nvidia.h100.wgmma.f16.f32",
        "nvidia.h100.wgmma.tf32.f32", "nvidia.a100.mma.f64.f64", "nvidia.a100.mma.s4.s32"}) {
    const Unit& unit = find_unit(name);
    for (const int size : {1, 3}) {
      for (const Data data : {Data::codes, Data::finite}) {
        INFO(name << " " << size);
        BatchCase c(unit, 12, size, size, 32, data);
        const auto fast = c.result(unit, [&] { multiply_batch(unit, c.batch); });
        CHECK((fast == c.result(unit, [&] { multiply_batch_reference(unit, c.batch); })));
      }
    }
  }
}

TEST_CASE("batch: random bits go by the number of the output", "[fast]") {
  const Unit& unit = find_unit("neutral.mac.e5m10.sr8");
  BatchCase c(unit, 7, 3, 5, 16, Data::moderate);
  const auto fast = c.result(unit, [&] { multiply_batch(unit, c.batch); });
  const auto one = c.result(unit, [&] { unit.multiply(c.batch.first); });
  CHECK(std::vector(fast.begin(), fast.begin() + 30) == std::vector(one.begin(), one.begin() + 30));
  // With B shared, the batch is one product of 21 rows.
  BatchCase flat(unit, 7, 3, 5, 16, Data::moderate, false, true);
  const auto stacked = flat.result(unit, [&] { multiply_batch(unit, flat.batch); });
  CHECK(stacked == flat.result(unit, [&] { multiply_batch_reference(unit, flat.batch); }));
}

TEST_CASE("batch: many dots are as their reference, flags included", "[fast]") {
  const Unit& unit = find_unit("nvidia.h100.wgmma.e4m3.f32");
  BatchCase c(unit, 100, 1, 1, 32, Data::codes);
  const auto fast = c.result(unit, [&] { multiply_batch(unit, c.batch); });
  std::vector<std::uint8_t> flags(100, 0xff);
  CHECK(fast == c.result(unit, [&] { multiply_batch_reference(unit, c.batch, flags.data()); }));
  for (const std::uint8_t f : flags) CHECK(f < 32);
  const Unit& integer = find_unit("nvidia.a100.mma.s8.s32");
  BatchCase d(integer, 2, 1, 1, 32, Data::codes);
  CHECK_THROWS_WITH(
      d.result(integer, [&] { multiply_batch_reference(integer, d.batch, flags.data()); }),
      Contains("unit nvidia.a100.mma.s8.s32 has no exception flags"));
}

}  // namespace batch_test
