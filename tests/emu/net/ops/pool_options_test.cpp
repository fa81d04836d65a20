// Pooling options: windows along an axis, divisors, and messages.
#include "emu/net/ops/pool_options.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/ops/pool_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("pooled_shape counts the windows that can be placed", "[fast]") {
  std::int64_t cases = 0;
  for (std::int64_t size = 1; size <= 9; ++size)
    for (std::int64_t kernel = 1; kernel <= 4; ++kernel)
      for (std::int64_t stride = 1; stride <= 5; ++stride)
        for (std::int64_t before = 0; before < kernel; ++before)
          for (std::int64_t after = 0; after < kernel; ++after)
            for (const bool ceil_mode : {false, true}) {
              const PoolOptions o{.kernel_height = kernel,
                                  .stride_height = stride,
                                  .stride_width = 1,
                                  .pad_top = before,
                                  .pad_bottom = after,
                                  .ceil_mode = ceil_mode,
                                  .stride_depth = 1};
              const std::vector<Shape> x{{1, size, 1, 1}};
              const std::int64_t count =
                  test::placed(size, kernel, stride, before, after, ceil_mode);
              INFO("size " << size << " kernel " << kernel << " stride " << stride << " pads "
                           << before << " " << after << " ceil " << ceil_mode);
              if (count == 0) {
                CHECK_THROWS_WITH(pooled_shape("pool", o, x), Catch::Contains("at least"));
                continue;
              }
              REQUIRE(pooled_shape("pool", o, x) == Shape{1, count, 1, 1});
              for (std::int64_t i = 0; i < count; ++i) {
                const PoolSpan span = pool_span(i, kernel, stride, before, after, size, false);
                REQUIRE((0 <= span.from && span.from < span.to && span.to <= size));
                REQUIRE(span.divisor == span.to - span.from);
                ++cases;
              }
            }
  CHECK(cases > 1000);
}

TEST_CASE("pool_span counts the border and nothing beyond it", "[fast]") {
  // Size 4, borders of 1: windows of 3 at -1, 1 and 3; the last one ends at 5, one in the border.
  const std::int64_t divisors[] = {3, 3, 2}, inside[] = {2, 3, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    CHECK(pool_span(i, 3, 2, 1, 1, 4, true).divisor == divisors[i]);
    CHECK(pool_span(i, 3, 2, 1, 1, 4, false).divisor == inside[i]);
  }
}

TEST_CASE("pooling options are checked by name", "[fast]") {
  const PoolOptions o = checked("pool", {.kernel_height = 3, .kernel_width = 2});
  CHECK((o.stride_height == 3 && o.stride_width == 2));
  CHECK_THROWS_WITH(checked("pool", {.kernel_height = 0}),
                    Catch::Contains("pool: kernel and stride"));
  CHECK_THROWS_WITH(checked("pool", {.stride_width = -1}), Catch::Contains("stride 1x-1"));
  CHECK_THROWS_WITH(checked("pool", {.kernel_height = 2, .pad_bottom = 2}),
                    Catch::Contains("bottom 2"));
  CHECK_THROWS_WITH(checked("pool", {.pad_left = -1}), Catch::Contains("left -1"));
  const std::vector<Shape> rank{{1, 2, 3}};
  CHECK_THROWS_WITH(pooled_shape("pool", o, rank),
                    Catch::Contains("[batch, height, width, channels]"));
}

}  // namespace
}  // namespace numemu::net
