// Every elementwise operator of one input: values, gradient, special values, threads, its line in
// docs/networks.md.
#include "emu/net/ops/pointwise.hpp"

#include <fmt/format.h>

#include <cmath>

#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::pointwise_test {
namespace {

using Reads = PointwiseRule::Reads;

using test::kInfinity;
constexpr std::uint32_t kNan = 0x7fc00000;
using test::kAnyNan;

/// A float32 result and the bits expected of it.
struct Special {
  float x;
  std::uint32_t y;
};

/// The derivative where it is a kink or a limit.
struct Slope {
  float x, factor;
};

/// What an operator is compared with.
struct Truth {
  std::string_view kind;
  double (*f)(double);
  /// Bounds results and derivatives; 0: f and its derivative are exact in float32.
  double size;
  double third;  ///< bounds the third derivative
  std::vector<Special> special;
  std::vector<Slope> slopes = {};
  std::vector<float> kinks = {};
  PointwiseNumbers numbers = {};
};

double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

double tanh_gelu(double x) {
  constexpr double kPi = 3.14159265358979323846;
  return x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}

// +0, 1, -1, infinities and some others as bits: 0, 3f800000, bf800000, 7f800000, ff800000.
const std::vector<Truth>& truths() {
  static const std::vector<Truth> kTruths = {
      {"relu",
       [](double x) { return std::fmax(x, 0); },
       0,
       0,
       {{-0.0f, 0}, {-1, 0}, {kInfinity, 0x7f800000}, {-kInfinity, 0}},
       {{0, 0}, {kAnyNan, 1}},
       {0}},
      {"leaky_relu",
       [](double x) { return x > 0 ? x : 0.25 * x; },
       0,
       0,
       {{-kInfinity, 0xff800000}, {kInfinity, 0x7f800000}, {-0.0f, 0x80000000}},
       {{0, 0.25f}},
       {0},
       {0.25f}},
      {"clip",
       [](double x) { return std::fmin(std::fmax(x, -0.5), 0.25); },
       0,
       0,
       {{-kInfinity, 0xbf000000}, {kInfinity, 0x3e800000}, {0.25f, 0x3e800000}},
       {{-0.5f, 0}, {0.25f, 0}, {0, 1}, {kAnyNan, 1}, {-1, 0}},
       {-0.5f, 0.25f},
       {-0.5f, 0.25f}},
      {"gelu",
       [](double x) { return x * phi(x); },
       6,
       2,  // numerically 1.6 at most
       {{kInfinity, 0x7f800000}, {2e38f, 0x7f167699}, {-kInfinity, 0x80000000}},
       {{kInfinity, 1}, {-kInfinity, 0}}},
      {"gelu_tanh",
       tanh_gelu,
       6,
       2,
       {{kInfinity, 0x7f800000}, {2e38f, 0x7f167699}, {-kInfinity, 0x80000000}},
       {{kInfinity, 1}, {-kInfinity, 0}}},
      {"silu",
       [](double x) { return x / (1 + std::exp(-x)); },
       8,
       1,  // numerically 0.8 at most
       {{kInfinity, 0x7f800000}, {-kInfinity, 0x80000000}, {-0.0f, 0x80000000}},
       {{kInfinity, 1}, {-kInfinity, 0}}},
      {"sigmoid",
       [](double x) { return 1 / (1 + std::exp(-x)); },
       1,
       0.125,  // at 0
       {{kInfinity, 0x3f800000}, {-kInfinity, 0}, {0, 0x3f000000}}},
      {"tanh",
       [](double x) { return std::tanh(x); },
       1,
       2,  // at 0
       {{kInfinity, 0x3f800000}, {-kInfinity, 0xbf800000}, {-0.0f, 0x80000000}}},
      {"erf",
       [](double x) { return std::erf(x); },
       1.13,
       2.26,  // 4 / sqrt(pi) at 0
       {{kInfinity, 0x3f800000}, {-kInfinity, 0xbf800000}, {-0.0f, 0x80000000}}},
      {"exp",
       [](double x) { return std::exp(x); },
       7.4,
       7.4,  // e^2
       {{kInfinity, 0x7f800000}, {-kInfinity, 0}, {0, 0x3f800000}}},
      {"log",
       [](double x) { return std::log(x); },
       2,
       16,  // 2 / x^3 at 1/2
       {{kInfinity, 0x7f800000}, {-kInfinity, kNan}, {0, 0xff800000}, {1, 0}}},
      {"abs",
       [](double x) { return std::fabs(x); },
       0,
       0,
       {{-kInfinity, 0x7f800000}, {-0.0f, 0}},
       {{0, 0}, {-0.0f, 0}},
       {0}},
      {"sqrt",
       [](double x) { return std::sqrt(x); },
       2.2,
       2.2,  // 3 / 8 x^(-5/2) at 1/2
       {{kInfinity, 0x7f800000}, {-1, kNan}, {-0.0f, 0x80000000}, {4, 0x40000000}}},
      {"reciprocal",
       [](double x) { return 1 / x; },
       4,
       96,  // 6 / x^4 at 1/2
       {{kInfinity, 0}, {-kInfinity, 0x80000000}, {-0.0f, 0xff800000}}},
      {"negate", [](double x) { return -x; }, 0, 0, {{kInfinity, 0xff800000}, {0, 0x80000000}}},
      {"elu",
       [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); },
       4,
       0.5,
       {{kInfinity, 0x7f800000}, {-kInfinity, 0xbf000000}, {-0.0f, 0x80000000}},
       {{0, 0.5f}},
       {0},
       {0.5f}},
      {"selu",
       [](double x) { return 2 * (x > 0 ? x : 0.5 * std::expm1(x)); },
       8,
       1,
       {{kInfinity, 0x7f800000}, {-kInfinity, 0xbf800000}},
       {{0, 1}},
       {0},
       {0.5f, 2}},
      {"celu",
       [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); },
       4,
       0.25,
       {{kInfinity, 0x7f800000}, {-kInfinity, 0xc0000000}, {-0.0f, 0x80000000}},
       {{0, 1}},
       {0},
       {2}},
      {"softplus",
       [](double x) { return std::log1p(std::exp(x)); },
       8,
       0.2,
       {{kInfinity, 0x7f800000}, {-kInfinity, 0}, {100, 0x42c80000}}},
      {"softsign",
       [](double x) { return x / (1 + std::fabs(x)); },
       1,
       6,  // at 0, where the second derivative jumps
       {{kInfinity, 0x3f800000}, {-kInfinity, 0xbf800000}, {1, 0x3f000000}},
       {{0, 1}},
       {0}},
      {"mish",
       [](double x) { return x * std::tanh(std::log1p(std::exp(x))); },
       8,
       2,  // numerically 1.3 at most
       {{kInfinity, 0x7f800000}, {-kInfinity, 0x80000000}, {-0.0f, 0x80000000}},
       {{kInfinity, 1}, {-kInfinity, 0}}},
      {"thresholded_relu",
       [](double x) { return x > 1 ? x : 0; },
       0,
       0,
       {{1, 0}, {-kInfinity, 0}, {2, 0x40000000}},
       {{1, 0}},
       {1},
       {1}},
      {"shrink",
       [](double x) {
         const double above = x > 1 ? x - 0.25 : 0;
         return x < -1 ? x + 0.25 : above;
       },
       1,
       0,
       {{1, 0}, {-1, 0}, {-kInfinity, 0xff800000}, {2, 0x3fe00000}, {-2, 0xbfe00000}},
       {{1, 0}},
       {1},
       {1, 0.25}},
      {"sin",
       [](double x) { return std::sin(x); },
       1,
       1,
       {{kInfinity, kNan}, {-0.0f, 0x80000000}, {0, 0}}},
      {"cos", [](double x) { return std::cos(x); }, 1, 1, {{kInfinity, kNan}, {0, 0x3f800000}}},
      {"tan",
       [](double x) { return std::tan(x); },
       3.5,
       60,  // numerically 54 at 1
       {{kInfinity, kNan}, {-0.0f, 0x80000000}}},
      {"asin",
       [](double x) { return std::asin(x); },
       1.6,
       30,
       {{1, 0x3fc90fdb}, {-1, 0xbfc90fdb}, {2, kNan}, {-0.0f, 0x80000000}}},
      {"acos",
       [](double x) { return std::acos(x); },
       2.5,
       30,
       {{1, 0}, {-1, 0x40490fdb}, {2, kNan}, {0, 0x3fc90fdb}}},
      {"atan",
       [](double x) { return std::atan(x); },
       1.4,
       2,
       {{kInfinity, 0x3fc90fdb}, {-kInfinity, 0xbfc90fdb}, {1, 0x3f490fdb}, {-0.0f, 0x80000000}}},
      {"sinh",
       [](double x) { return std::sinh(x); },
       10.1,
       10.1,
       {{kInfinity, 0x7f800000}, {-0.0f, 0x80000000}, {-200, 0xff800000}}},
      {"cosh",
       [](double x) { return std::cosh(x); },
       10.1,
       10.1,
       {{-kInfinity, 0x7f800000}, {0, 0x3f800000}}},
      {"asinh",
       [](double x) { return std::asinh(x); },
       2.1,
       1,
       {{kInfinity, 0x7f800000}, {-kInfinity, 0xff800000}, {-0.0f, 0x80000000}}},
      {"acosh",
       [](double x) { return std::acosh(x); },
       2.1,
       6,
       {{kInfinity, 0x7f800000}, {1, 0}, {0.5f, kNan}}},
      {"atanh",
       [](double x) { return std::atanh(x); },
       2.3,
       80,
       {{1, 0x7f800000}, {-1, 0xff800000}, {2, kNan}, {-0.0f, 0x80000000}}},
      {"floor",
       [](double x) { return std::floor(x); },
       0,
       0,
       {{-0.5f, 0xbf800000}, {-0.0f, 0x80000000}, {kInfinity, 0x7f800000}}},
      {"ceil",
       [](double x) { return std::ceil(x); },
       0,
       0,
       {{-0.5f, 0x80000000}, {0.5f, 0x3f800000}, {kInfinity, 0x7f800000}}},
      {"round",
       [](double x) { return std::nearbyint(x); },
       0,
       0,
       {{0.5f, 0}, {1.5f, 0x40000000}, {2.5f, 0x40000000}, {-0.5f, 0x80000000}}},
      {"truncate",
       [](double x) { return std::trunc(x); },
       0,
       0,
       {{-1.75f, 0xbf800000}, {1.75f, 0x3f800000}}},
      {"sign",
       [](double x) { return x > 0   ? 1.0
                             : x < 0 ? -1.0
                                     : 0.0; },
       0,
       0,
       {{kInfinity, 0x3f800000}, {-1e-30f, 0xbf800000}, {0, 0}}},
  };
  return kTruths;
}

const Truth& truth_of(const PointwiseRule& rule) {
  for (const Truth& truth : truths()) {
    if (truth.kind == rule.kind) return truth;
  }
  FAIL("no float64 function to compare " << rule.kind << " with");
  return truths()[0];
}

/// `body(operator, rule, truth)` for every row of the table.
template <class Body>
void for_each_rule(const Body& body) {
  for (const PointwiseRule& rule : pointwise_rules()) {
    INFO(rule.kind);
    const Truth& truth = truth_of(rule);
    Pointwise op(rule, truth.numbers);
    body(op, rule, truth);
  }
}

TEST_CASE("every elementwise operator equals its float64 function, and its gradient too",
          "[fast]") {
  for_each_rule([](Pointwise& op, const PointwiseRule& rule, const Truth& truth) {
    Tensor x = test::random_tensor({3, 50}, 1);
    for (float& v : x.data) {
      v = static_cast<float>((rule.low + rule.high) / 2 + (rule.high - rule.low) / 2 * v);
      // Away from the kinks by more than the step of the differences.
      for (const float kink : truth.kinks) {
        if (std::fabs(v - kink) < 0x1p-10f) v = kink + 0x1p-10f;
      }
    }
    // Three roundings of float32; or those of 150 float64 terms, divided by the step.
    const double tolerance = truth.size > 0 ? truth.size * 3 * 0x1p-24 : 150 * 4 * 0x1p-53 * 0x1p12;
    test::check_pointwise(op, x, truth.f, tolerance, truth.third);
  });
}

TEST_CASE("every elementwise operator of special values", "[fast]") {
  for_each_rule([](Pointwise& op, const PointwiseRule&, const Truth& truth) {
    CHECK_FALSE(truth.special.empty());
    for (const Special& special : truth.special) {
      INFO(special.x);
      CHECK(test::bits(test::forward_of(op, {special.x})) == std::vector<std::uint32_t>{special.y});
    }
    CHECK(test::bits(test::forward_of(op, {kAnyNan})) == std::vector<std::uint32_t>{kNan});
  });
}

TEST_CASE("derivatives of elementwise operators at kinks and in limits", "[fast]") {
  for_each_rule([](Pointwise& op, const PointwiseRule&, const Truth& truth) {
    for (const Slope& slope : truth.slopes) {
      INFO(slope.x);
      Numerics numerics;
      const test::OpResult result = test::run_op(op, {Tensor({1}, slope.x)}, numerics);
      CHECK(result.grad_inputs[0].data[0] == slope.factor * result.grad_output.data[0]);
    }
  });
}

TEST_CASE("every elementwise operator has the same bits on any number of threads", "[fast]") {
  for_each_rule([](Pointwise& op, const PointwiseRule&, const Truth&) {
    test::check_threads(op, {test::random_tensor({150, 100}, 2)});
  });
}

TEST_CASE("every elementwise operator takes one input", "[fast]") {
  for_each_rule([](Pointwise& op, const PointwiseRule& rule, const Truth&) {
    const std::string kind(rule.kind);
    const std::vector<Shape> none, two{{2}, {2}};
    CHECK_THROWS_WITH(op.output_shape(none), kind + ": expected one input, got 0");
    CHECK_THROWS_WITH(op.output_shape(two), kind + ": expected one input, got 2");
  });
}

TEST_CASE("docs/networks.md has a line for every elementwise operator", "[fast]") {
  const std::string docs = read_text(NUMEMU_SOURCE "/docs/networks.md");
  for (const PointwiseRule& rule : pointwise_rules()) {
    const std::string reads =
        rule.reads == Reads::nothing
            ? ""
            : test::reading_text(rule.reads == Reads::x ? "x" : "y", rule.use);
    const std::string line = fmt::format("| `{}` | {} | {} | {} |", rule.kind, rule.formula, reads,
                                         rule.onnx.empty() ? "" : fmt::format("`{}`", rule.onnx));
    INFO(line);
    CHECK(docs.find(line + "\n") != std::string::npos);
  }
}

TEST_CASE("unknown operators and numbers that an operator refuses", "[fast]") {
  CHECK_THROWS_WITH(Pointwise("sigmoyd"), Catch::Contains("did you mean 'sigmoid'?"));
  CHECK_THROWS_WITH(Pointwise("clip", {kAnyNan, 0}),
                    Catch::Contains("low and high that are numbers"));
  CHECK_THROWS_WITH(Pointwise("leaky_relu", {kInfinity}),
                    "leaky_relu: expected a finite slope, got inf");
}

TEST_CASE("where the bounds of clip are crossed the upper one is the result", "[fast]") {
  CHECK(test::forward_of(Pointwise("clip", {1, -2}), {-5, 0, 7}).data ==
        std::vector<float>{-2, -2, -2});
}

TEST_CASE("infinite bounds of clip do not bind", "[fast]") {
  CHECK(test::forward_of(Pointwise("clip", {-kInfinity, 6}), {-1e30f, 7}).data ==
        std::vector<float>{-1e30f, 6});
  CHECK(test::forward_of(Pointwise("clip", {0, kInfinity}), {-1e30f, 1e30f}).data ==
        std::vector<float>{0, 1e30f});
}

TEST_CASE("gelu keeps its relative precision in the lower tail", "[fast]") {
  for (const float v : {-3.0f, -6.0f, -9.0f, -12.5f}) {
    constexpr double kRelative = 0x1p-23;  // 2 ulp
    CHECK(test::forward_of(Pointwise("gelu"), {v}).data[0] ==
          Approx(v * phi(v)).epsilon(kRelative).margin(0));
  }
}

}  // namespace
}  // namespace numemu::net::pointwise_test
