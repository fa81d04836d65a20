// Windows, and what pooling takes of them, against a plain loop.
#include "emu/net/ops/pool.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::pool_test {
namespace {

struct PoolCase {
  PoolOptions options;
  Shape x, y;

  std::string name() const {
    const PoolOptions& o = options;
    std::string text;
    for (const std::int64_t number :
         {o.kernel_height, o.kernel_width, o.stride_height, o.stride_width, o.pad_top, o.pad_left,
          o.pad_bottom, o.pad_right}) {
      text += std::to_string(number) + " ";
    }
    return text + (o.ceil_mode ? "ceil " : "floor ") + (o.count_include_pad ? "padded" : "inside");
  }

  /// body(out, in, read): flat indices, `in` -1 in the border; `read` numbers the elements of a
  /// window. What lies beyond the border is not visited.
  template <class Body>
  void for_each_read(const Body& body) const {
    const PoolOptions& o = options;
    const Shape from = as_volume(x), to = as_volume(y);
    const std::int64_t kernel[] = {o.kernel_depth, o.kernel_height, o.kernel_width};
    const std::int64_t stride[] = {o.stride_depth, o.stride_height, o.stride_width};
    const std::int64_t before[] = {o.pad_front, o.pad_top, o.pad_left};
    const std::int64_t after[] = {o.pad_back, o.pad_bottom, o.pad_right};
    const std::int64_t taps = kernel[0] * kernel[1] * kernel[2];
    for (std::int64_t out = 0; out < element_count(to); ++out) {
      const std::int64_t c = out % to[4], n = out / (to[1] * to[2] * to[3] * to[4]);
      const std::int64_t at[] = {out / (to[4] * to[3] * to[2]) % to[1],
                                 out / (to[4] * to[3]) % to[2], out / to[4] % to[3]};
      std::int64_t read = 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t of[] = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1],
                                   tap % kernel[2]};
        bool visited = true, inside = true;
        std::int64_t in = n;
        for (int a = 0; a < 3; ++a) {
          const std::int64_t place = at[a] * stride[a] + of[a] - before[a];
          visited = visited && place < from[a + 1] + after[a];
          inside = inside && place >= 0 && place < from[a + 1];
          in = in * from[a + 1] + place;
        }
        if (visited) body(out, inside ? in * from[4] + c : -1, read++);
      }
    }
  }
};

/// The number of windows along an axis, found by placing them one after the other.
std::int64_t placed(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                    std::int64_t before, std::int64_t after, bool ceil_mode) {
  std::int64_t count = 0;
  for (std::int64_t start = -before;; start += stride, ++count) {
    const bool whole = start + kernel <= size + after;
    const bool started = count > 0 && start - stride + kernel < size + after && start < size;
    if (!whole && !(ceil_mode && started)) return count;
  }
}

std::vector<PoolCase> pool_cases() {
  struct Pads {
    std::int64_t top, left, bottom, right;
  };
  struct Axes {
    std::int64_t height, width;
  };
  std::vector<PoolCase> cases;
  for (const Axes kernel : {Axes{1, 1}, Axes{2, 2}, Axes{3, 3}, Axes{3, 2}})
    for (const Axes stride : {Axes{1, 1}, Axes{2, 2}, Axes{3, 1}, Axes{4, 3}})
      for (const Pads pads : {Pads{0, 0, 0, 0}, Pads{1, 1, 1, 1}, Pads{0, 1, 2, 0}})
        for (const bool ceil_mode : {false, true})
          for (const bool include : {false, true}) {
            PoolOptions o{kernel.height, kernel.width, stride.height, stride.width, pads.top,
                          pads.left,     pads.bottom,  pads.right,    ceil_mode,    include};
            o.stride_depth = 1;
            if (pads.top >= kernel.height || pads.bottom >= kernel.height) continue;
            if (pads.left >= kernel.width || pads.right >= kernel.width) continue;
            const Shape x{2, 6, 5, 2};
            cases.push_back(
                {o,
                 x,
                 {2, placed(6, kernel.height, stride.height, pads.top, pads.bottom, ceil_mode),
                  placed(5, kernel.width, stride.width, pads.left, pads.right, ceil_mode), 2}});
          }
  for (const bool include : {false, true}) {
    PoolOptions line{1, 3, 1, 2, 0, 1, 0, 1, false, include};
    line.stride_depth = 1;
    cases.push_back({line, {2, 7, 3}, {2, 4, 3}});
    PoolOptions volume{2, 3, 2, 1, 1, 1, 0, 1, false, include};
    volume.kernel_depth = 3, volume.stride_depth = 2, volume.pad_front = volume.pad_back = 1;
    cases.push_back({volume, {2, 4, 5, 4, 2}, {2, 2, 3, 4, 2}});
  }
  return cases;
}

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
              const std::int64_t count = placed(size, kernel, stride, before, after, ceil_mode);
              INFO("size " << size << " kernel " << kernel << " stride " << stride << " pads "
                           << before << " " << after << " ceil " << ceil_mode);
              if (count == 0) {
                CHECK_THROWS_WITH(pooled_shape("pool", o, x), Catch::Contains("at least"));
                continue;
              }
              REQUIRE(pooled_shape("pool", o, x) == Shape{1, count, 1, 1});
              for (std::int64_t i = 0; i < count; ++i) {
                const PoolSpan span = pool_span(i, kernel, stride, 1, before, after, size, false);
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
    CHECK(pool_span(i, 3, 2, 1, 1, 1, 4, true).divisor == divisors[i]);
    CHECK(pool_span(i, 3, 2, 1, 1, 1, 4, false).divisor == inside[i]);
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

TEST_CASE("max_pool and its gradient are those of loops over every window", "[fast]") {
  for (const PoolCase& c : pool_cases()) {
    INFO(c.name());
    MaxPool op(c.options);
    // A shuffled ramp: all values differ by more than the difference step.
    Tensor x(c.x);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      x.data[i] = static_cast<float>((i * 7919 + 13) % 1009) / 1024 - 0.5f;
    }
    const std::vector<Shape> shapes{c.x};
    REQUIRE(op.output_shape(shapes) == c.y);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(c.y)),
                      -std::numeric_limits<double>::infinity());
      c.for_each_read([&](auto out, auto in, auto) {
        if (in >= 0) y[out] = std::max(y[out], arguments[0][in]);
      });
      return y;
    };
    // A gradient sums at most one number in [-1, 1] per window of a pixel; differences of some
    // hundred terms in float64 add less.
    test::check_op(op, {x}, reference,
                   test::dot_tolerance(c.options.kernel_height * c.options.kernel_width));
  }
}

TEST_CASE("max_pool of a size is that of its options", "[fast]") {
  const Tensor x = test::random_tensor({2, 7, 6, 3}, 1);
  Numerics numerics;
  for (const std::int64_t stride : {0, 1, 2, 3}) {
    const MaxPool brief(3, stride), spelt({.kernel_height = 3,
                                           .kernel_width = 3,
                                           .stride_height = stride == 0 ? 3 : stride,
                                           .stride_width = stride == 0 ? 3 : stride});
    const test::OpResult a = test::run_op(brief, {x}, numerics),
                         b = test::run_op(spelt, {x}, numerics);
    CHECK(a.output.shape == b.output.shape);
    CHECK(a.output.data == b.output.data);
    CHECK(a.grad_inputs[0].data == b.grad_inputs[0].data);
  }
}

TEST_CASE("windows with gaps are those of the pixels between them left out", "[fast]") {
  // 1, 2, .. 9 in a row, three pixels of a distance of 3 between borders of 2.
  Tensor x({1, 1, 9, 1});
  for (std::size_t i = 0; i < 9; ++i) x.data[i] = static_cast<float>(i + 1);
  PoolOptions o{.kernel_width = 3, .stride_width = 2, .pad_left = 2, .pad_right = 2};
  o.stride_height = 1;
  o.dilation_width = 3;
  Numerics numerics;
  const test::OpResult most = test::run_op(MaxPool(o), {x}, numerics);
  // Windows begin at -2, 0, 2, 4; the last would read 4, 7 and 10.
  CHECK(most.output.data == std::vector<float>{5, 7, 9, 8});
  CHECK(test::run_op(AveragePool(o), {x}, numerics).output.data ==
        std::vector<float>{3.5f, 4, 6, 6.5f});
  o.count_include_pad = true;
  CHECK(test::run_op(AveragePool(o), {x}, numerics).output.data ==
        std::vector<float>{static_cast<float>(7 / 3.0), 4, 6, static_cast<float>(13 / 3.0)});
  const auto places = [&](bool column_major) {
    return test::run_op(MaxPoolPlaces(o, column_major), {x}, numerics).output.data;
  };
  CHECK(places(false) == std::vector<float>{4, 6, 8, 7});
  CHECK(places(true) == places(false));
}

TEST_CASE("places of maxima count with the channels in front", "[fast]") {
  // Two maps of 2 x 2 of two channels; the largest is the first, and the last.
  Tensor x({2, 2, 2, 2});
  x.data = {9, 0, 1, 0, 2, 0, 3, 7,  //
            9, 0, 1, 0, 2, 0, 3, 7};
  Numerics numerics;
  const PoolOptions o{.kernel_height = 2, .kernel_width = 2};
  CHECK(test::run_op(MaxPoolPlaces(o, false), {x}, numerics).output.data ==
        std::vector<float>{0, 7, 8, 15});
  x.data = {0, 0, 9, 0, 2, 7, 3, 0,  //
            0, 0, 9, 0, 2, 7, 3, 0};
  CHECK(test::run_op(MaxPoolPlaces(o, false), {x}, numerics).output.data ==
        std::vector<float>{1, 6, 9, 14});
  CHECK(test::run_op(MaxPoolPlaces(o, true), {x}, numerics).output.data ==
        std::vector<float>{2, 5, 10, 13});
}

TEST_CASE("max_pool never takes its border", "[fast]") {
  const MaxPool op({.kernel_height = 2, .kernel_width = 2, .pad_top = 1, .pad_left = 1});
  Tensor x({1, 1, 1, 1}, -3), y({1, 1, 1, 1});
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == -3);
}

TEST_CASE("max_pool gives the gradient to the first of equal maxima and lets a NaN win", "[fast]") {
  MaxPool op(2);
  Numerics numerics;
  Tensor x({1, 2, 4, 1}), y({1, 1, 2, 1});
  const float nan = std::bit_cast<float>(0xffc12345u);  // any; the result is the neutral one
  x.data = {1, 3, 5, nan,                               //
            3, 2, 7, nan};
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == 3);
  CHECK(std::bit_cast<std::uint32_t>(y.data[1]) == 0x7fc00000u);
  Tensor g({1, 1, 2, 1});
  g.data = {10, 20};
  std::vector<Tensor> grad_inputs{Tensor(x.shape)};
  op.backward({"pool", numerics}, {inputs, nullptr, g, grad_inputs, {}, true});
  CHECK(grad_inputs[0].data == std::vector<float>{0, 10, 0, 20, 0, 0, 0, 0});
}

TEST_CASE("max_pool refuses images smaller than its window", "[fast]") {
  const MaxPool op(3);
  const std::vector<Shape> small{{1, 2, 9, 1}};
  CHECK_THROWS_WITH(op.output_shape(small), Catch::Contains("at least 3x3"));
  CHECK_THROWS_AS(MaxPool(0), Error);
}

TEST_CASE("average_pool and its gradient are those of loops over every window", "[fast]") {
  for (const PoolCase& c : pool_cases()) {
    INFO(c.name());
    AveragePool op(c.options);
    const std::vector<Shape> shapes{c.x};
    REQUIRE(op.output_shape(shapes) == c.y);
    const auto reference = [&](const std::vector<test::Doubles>& arguments) {
      test::Doubles y(static_cast<std::size_t>(element_count(c.y))), divisors(y.size());
      c.for_each_read([&](auto out, auto in, auto) {
        if (in >= 0) y[out] += arguments[0][in];
        if (in >= 0 || c.options.count_include_pad) ++divisors[out];
      });
      for (std::size_t i = 0; i < y.size(); ++i) y[i] /= divisors[i];
      return y;
    };
    // One rounding of a number of at most 9 windows' gradients (below 9).
    constexpr double kTolerance = 9 * 0x1p-24;
    test::check_op(op, {test::random_tensor(c.x, 1)}, reference, kTolerance);
  }
}

TEST_CASE("average_pool rounds once", "[fast]") {
  const AveragePool op({.kernel_height = 3, .kernel_width = 1});
  Tensor x({1, 3, 1, 1}), y({1, 1, 1, 1});
  x.data = {0x1p24f, 9, 0x1p24f};  // float32 would round the sum, then the mean: 11184813
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  CHECK(y.data[0] == 11184814);  // (2^25 + 9) / 3 = 11184813.67
}

TEST_CASE("average_pool refuses images smaller than its window", "[fast]") {
  const std::vector<Shape> small{{1, 2, 9, 1}};
  CHECK_THROWS_WITH(AveragePool({.kernel_height = 3, .kernel_width = 3}).output_shape(small),
                    Catch::Contains("average_pool") && Catch::Contains("at least 3x3"));
  CHECK_THROWS_AS(AveragePool({.kernel_height = -1}), Error);
}

TEST_CASE("global_average_pool and its gradient are those of loops in float64", "[fast]") {
  constexpr std::int64_t kBatch = 3, kPixels = 4 * 5, kChannels = 3;
  GlobalAveragePool op;
  const auto reference = [](const std::vector<test::Doubles>& arguments) {
    test::Doubles y(kBatch * kChannels);
    for (std::int64_t n = 0; n < kBatch; ++n)
      for (std::int64_t p = 0; p < kPixels; ++p)
        for (std::int64_t c = 0; c < kChannels; ++c)
          y[n * kChannels + c] += arguments[0][(n * kPixels + p) * kChannels + c] / kPixels;
    return y;
  };
  constexpr double kTolerance = 0x1p-24;  // one rounding of a number below 1
  test::check_op(op, {test::random_tensor({kBatch, 4, 5, kChannels}, 1)}, reference, kTolerance);
  const std::vector<Shape> shapes{{2, 8, 8, 64}};
  CHECK(op.output_shape(shapes) == Shape{2, 1, 1, 64});
}

TEST_CASE("global_average_pool rounds a long sum once", "[fast]") {
  constexpr std::int64_t kPixels = 63 * 65;
  const GlobalAveragePool op;
  Tensor x({1, 63, 65, 1}, 1), y({1, 1, 1, 1});
  x.data[0] = 0x1p26f;  // float32 would lose every 1 that follows
  Numerics numerics;
  const std::vector<const Tensor*> inputs{&x};
  op.forward({"pool", numerics}, inputs, y);
  // 16389.0007 to multiples of 2^-9; a sum rounded first would end one above.
  CHECK(y.data[0] == static_cast<float>((0x1p26 + kPixels - 1) / kPixels));
}

TEST_CASE("global_average_pool refuses what is no image", "[fast]") {
  const std::vector<Shape> flat{{2, 3}}, empty{{2, 0, 3, 1}};
  CHECK_THROWS_WITH(GlobalAveragePool().output_shape(flat), Catch::Contains("[2, 3]"));
  CHECK_THROWS_AS(GlobalAveragePool().output_shape(empty), Error);
}

}  // namespace

}  // namespace numemu::net::pool_test
