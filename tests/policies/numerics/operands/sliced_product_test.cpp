// Blocks with float32 scales on a unit that reads codes: slices along the depth against sums by
// hand, and what is refused.
#include "policies/numerics/operands/sliced_product.hpp"

#include <cmath>

#include "emu/net/forward.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/matmul.hpp"
#include "formats/error.hpp"
#include "formats/scaling/quantize_blocks.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/numerics/by_hand.hpp"
#include "tests/policies/one_layer.hpp"

namespace sliced_product_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;
using net::GemmKind;

namespace {

constexpr std::int64_t kBlock = 16;

std::string keys(const std::string& weight, const std::string& rest) {
  const std::string block = R"({"format": "e4m3fn", "granularity": "block", "block": 16})";
  const std::string unit = R"({"unit": "nvidia.h100.wgmma.e4m3.f32"})";
  return R"j("roles": {"weight": )j" + weight + R"j(, "activation": )j" + block +
         R"j(, "gradient": )j" + block + R"j(}, "gemms": {"fprop": )j" + unit + R"j(, "dgrad": )j" +
         unit + R"j(, "wgrad": )j" + unit + "}" + rest;
}
const char* const kTile = R"({"format": "e4m3fn", "granularity": "tile", "block": 16})";
const char* const kLines = R"({"format": "e4m3fn", "granularity": "block", "block": 16})";

/// A row-major operand [rows, depth] in codes with a scale per block, or per square of blocks.
struct Quantized {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;  ///< [rows, blocks]
};

Quantized quantized(const std::vector<float>& x, std::int64_t rows, std::int64_t depth,
                    bool squares) {
  const std::int64_t blocks = (depth + kBlock - 1) / kBlock, high = squares ? kBlock : 1;
  Quantized q;
  q.codes.resize(x.size());
  q.scales.resize(static_cast<std::size_t>(rows * blocks));
  const BlockFormat& format = find_block_format("group(float8_e4m3fn,256,float32)");
  const BlockQuantization how{.format = &format, .rule = &find_scale_rule("absmax", format)};
  for (std::int64_t r = 0; r < rows; r += high) {
    for (std::int64_t k = 0; k < depth; k += kBlock) {
      std::vector<float> part;
      std::vector<std::size_t> at;
      for (std::int64_t i = r; i < std::min(r + high, rows); ++i) {
        for (std::int64_t j = k; j < std::min(k + kBlock, depth); ++j) {
          at.push_back(static_cast<std::size_t>(i * depth + j));
          part.push_back(x[at.back()]);
        }
      }
      std::vector<std::uint8_t> codes(part.size());
      float scale = 0;
      quantize_blocks_reference(how,
                                block_layout(format, {static_cast<std::int64_t>(part.size())}, 0),
                                part.data(), {.codes = codes.data(), .scales = &scale}, nullptr);
      for (std::size_t i = 0; i < at.size(); ++i) q.codes[at[i]] = codes[i];
      for (std::int64_t i = r; i < std::min(r + high, rows); ++i)
        q.scales[static_cast<std::size_t>(i * blocks + k / kBlock)] = scale;
    }
  }
  return q;
}

/// Checks every product of an operator.
struct ByHand final : net::Forwarding {
  using Forwarding::Forwarding;
  void product(const net::Step& step, const net::Product& p) override {
    Forwarding::product(step, p);
    const unit::Unit& unit = unit::find_unit("nvidia.h100.wgmma.e4m3.f32");
    const std::int64_t blocks = (p.k + kBlock - 1) / kBlock;
    const auto rows_of = [&](const net::ProductSide& side, std::int64_t i, std::int64_t rows) {
      return gathered(side, i, rows, p.k, 0.0f,
                      [&](std::int64_t e) { return side.source->data[e]; });
    };
    for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
      const bool squares = tiles && p.b.role == net::Role::weight;
      const Quantized a = quantized(rows_of(p.a, i, p.m), p.m, p.k, false),
                      b = quantized(rows_of(p.b, i, p.n), p.n, p.k, squares);
      std::vector<float> d(static_cast<std::size_t>(p.m * p.n), 0.0f), sums(d.size());
      for (std::int64_t s = 0; s < blocks; ++s) {
        const std::int64_t first = s * kBlock, width = std::min(kBlock, p.k - first);
        const auto slice = [&](const std::vector<std::uint8_t>& codes, std::int64_t rows) {
          std::vector<std::uint8_t> out;
          for (std::int64_t r = 0; r < rows; ++r)
            out.insert(out.end(), codes.begin() + r * p.k + first,
                       codes.begin() + r * p.k + first + width);
          return out;
        };
        const std::vector<std::uint8_t> left = slice(a.codes, p.m), right = slice(b.codes, p.n);
        const unit::Gather ga = unit::Gather::matrix(p.m, width),
                           gb = unit::Gather::matrix(p.n, width);
        const Format& e4m3 = find_format("float8_e4m3fn");
        unit.multiply({.m = p.m,
                       .n = p.n,
                       .k = width,
                       .a = {&e4m3, left.data(), &ga},
                       .b = {&e4m3, right.data(), &gb},
                       .d = sums.data()});
        for (std::int64_t e = 0; e < p.m * p.n; ++e)
          d[e] = std::fma(a.scales[e / p.n * blocks + s] * b.scales[e % p.n * blocks + s], sums[e],
                          d[e]);
      }
      CHECK(differences(d, result_of(p, i)) == 0);
      ++products;
    }
  }
  bool tiles = false;
  std::int64_t products = 0;
};

}  // namespace

TEST_CASE("sliced products: sums of every block are scaled and added", "[fast]") {
  for (const char* weight : {kTile, kLines}) {
    // 40 inputs, 24 outputs and 21 rows end with short blocks.
    OneLayer layer(keys(weight, ""), std::make_unique<net::Linear>(40, 24, false), {40});
    ByHand by_hand(layer.in_training(0));
    by_hand.tiles = weight == kTile;
    run_op(layer.op(), {21, 40}, by_hand);
    CHECK(by_hand.products == 3);
    CHECK(layer.numerics()
              .roles()
              .operand_counts("layer", GemmKind::fprop, net::Role::weight)
              .elements == 40 * 24);
  }
}

TEST_CASE("sliced products: heads of attention", "[fast]") {
  const net::MatMulOptions options{.heads = 2, .transpose_b = true};
  OneLayer layer(keys(kLines, ""), std::make_unique<net::MatMul>(options), {6, 40}, 2);
  ByHand by_hand(layer.in_training(0));
  const net::Tensor a = noise({3, 6, 40}, 1), b = noise({3, 6, 40}, 2);
  const std::vector<const net::Tensor*> inputs = {&a, &b};
  net::Tensor y({3, 2, 6, 6});
  const net::OpCall call{"layer", by_hand, net::Phase::training};
  layer.op().forward(call, inputs, y);
  std::vector<net::Tensor> gradients{net::Tensor(a.shape), net::Tensor(b.shape)};
  layer.op().backward(call, {inputs, nullptr, noise(y.shape, 3), gradients, {}, true});
  CHECK(by_hand.products == 3 * 6);
}

TEST_CASE("sliced products: what cannot be sliced is refused", "[fast]") {
  const auto message = [](const std::string& text, std::unique_ptr<net::Op> op,
                          const net::Shape& shape) {
    return numemu::test::message_of([&] {
      OneLayer layer(text, std::move(op), {shape.begin() + 1, shape.end()});
      run_op(layer.op(), shape, layer.in_training(0));
    });
  };
  const auto linear = [] { return std::make_unique<net::Linear>(40, 24, false); };
  CHECK_THAT(message(keys(R"({"format": "e4m3fn"})", ""), linear(), {21, 40}),
             Contains("expected both operands in blocks"));
  CHECK_THAT(message(keys(R"({"format": "e4m3fn", "granularity": "tile", "block": 8})", ""),
                     linear(), {21, 40}),
             Contains("expected blocks of one size, found 16 and 8"));
}

TEST_CASE("sliced products: windows are those of the matrix that a kernel gathers", "[fast]") {
  for (const char* weight : {kTile, kLines}) {
    for (const std::int64_t kernel : {1, 3}) {
      INFO(weight << " " << kernel);
      // 12 channels: blocks of the depth run across taps.
      OneLayer layer(keys(weight, ""),
                     std::make_unique<net::Conv2d>(net::Conv2dOptions{.in_channels = 12,
                                                                      .out_channels = 20,
                                                                      .kernel_height = kernel,
                                                                      .kernel_width = kernel,
                                                                      .stride = 2,
                                                                      .pad = kernel / 2,
                                                                      .bias = false}),
                     {5, 5, 12});
      ByHand by_hand(layer.in_training(0));
      by_hand.tiles = weight == kTile;
      run_op(layer.op(), {2, 5, 5, 12}, by_hand);
      CHECK(by_hand.products == 3);
    }
  }
}

TEST_CASE("sliced products: a frozen weight is quantized once, with the same results and counts",
          "[fast]") {
  OneLayer layer(keys(kTile, ""), std::make_unique<net::Linear>(40, 24, false), {40});
  net::Tensor& weight = layer.op().parameters()[0].value;
  weight = noise({24, 40}, 3);
  const net::Tensor x = noise({5, 40}, 4), other = noise({7, 40}, 5);
  const auto forward = [&](const net::Tensor& inputs) {
    return net::forward(layer.graph(), inputs, layer.numerics()).data;
  };
  const auto counted = [&] {
    return layer.numerics()
        .roles()
        .operand_counts("layer", GemmKind::fprop, net::Role::weight)
        .elements;
  };
  const std::vector<float> loose = forward(x), loose_other = forward(other);
  layer.numerics().freeze(layer.graph(), 5, [&](std::int64_t first, std::int64_t count) {
    net::Tensor batch({count, 40});
    std::copy_n(x.data.begin() + first * 40, count * 40, batch.data.begin());
    return std::vector<net::Tensor>{batch};
  });
  layer.numerics().roles().reset_counts();
  CHECK(forward(x) == loose);
  CHECK(forward(other) == loose_other);
  CHECK(counted() == 2 * 24 * 40);
  // The first product's codes serve later ones, until the numerics are frozen again.
  weight.data[0] += 1;
  CHECK(forward(x) == loose);
}

}  // namespace sliced_product_test
