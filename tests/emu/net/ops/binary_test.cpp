// Every elementwise operator of two inputs under broadcasting, and those of three: values,
// gradients, special values, threads, the lines in docs/networks.md.
#include "emu/net/ops/binary.hpp"

#include <fmt/format.h>

#include <cmath>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::binary_test {
namespace {

using test::kInfinity;
constexpr std::uint32_t kNan = 0x7fc00000;
using test::kAnyNan;

struct Special {
  float a, b;
  std::uint32_t y;
};

/// What an operator is compared with.
struct Truth {
  std::string_view kind;
  double (*f)(double, double);
  double size;   ///< bounds results and derivatives
  double third;  ///< bounds the third derivatives
  std::vector<Special> special;
};

const std::vector<Truth>& truths() {
  static const std::vector<Truth> kTruths = {
      {"add",
       [](double a, double b) { return a + b; },
       2,
       0,
       {{kInfinity, -kInfinity, kNan}, {3e38f, 3e38f, 0x7f800000}, {-0.0f, 0, 0}}},
      {"subtract",
       [](double a, double b) { return a - b; },
       2,
       0,
       {{kInfinity, kInfinity, kNan}, {3e38f, -3e38f, 0x7f800000}, {-0.0f, 0, 0x80000000}}},
      {"multiply",
       [](double a, double b) { return a * b; },
       2,
       0,
       {{kInfinity, 0, kNan}, {3e38f, -3e38f, 0xff800000}, {-0.0f, 1, 0x80000000}}},
      {"divide",
       [](double a, double b) { return a / b; },
       6,
       18,  // 6 a / b^4 at 1
       {{0, 0, kNan}, {1, -0.0f, 0xff800000}, {kInfinity, kInfinity, kNan}, {1, kInfinity, 0}}},
      {"power",
       [](double a, double b) { return std::pow(a, b); },
       8,
       10,  // below 8 ln(2)^3 and 6
       {{-2, 2, 0x40800000}, {0, -1, 0x7f800000}, {-1, 0.5f, kNan}, {kAnyNan, 0, 0x3f800000}}},
      {"maximum",
       [](double a, double b) { return a > b ? a : b; },
       1,
       0,
       {{1, 2, 0x40000000}, {1, kAnyNan, kNan}, {-kInfinity, -1, 0xbf800000}}},
      {"minimum",
       [](double a, double b) { return a < b ? a : b; },
       1,
       0,
       {{1, 2, 0x3f800000}, {1, kAnyNan, kNan}, {kInfinity, -1, 0xbf800000}}},
      {"prelu",
       [](double a, double b) { return a > 0 ? a : b * a; },
       1,
       0,
       {{-2, 0.5f, 0xbf800000}, {2, 0.5f, 0x40000000}, {-kInfinity, 1, 0xff800000}}},
      {"modulo",
       [](double a, double b) { return a - b * std::floor(a / b); },
       1.5,
       0,
       {{7, 3, 0x3f800000}, {-7, 3, 0x40000000}, {7, -3, 0xc0000000}, {6, 3, 0}, {1, 0, kNan}}},
      {"remainder",
       [](double a, double b) { return std::fmod(a, b); },
       1.5,
       0,
       {{7, 3, 0x3f800000}, {-7, 3, 0xbf800000}, {7, -3, 0x3f800000}, {1, 0, kNan}}},
      {"quotient",
       [](double a, double b) { return std::trunc(a / b); },
       1,
       0,
       {{7, 2, 0x40400000}, {-7, 2, 0xc0400000}, {16777215, 16777216, 0}, {1, 0, 0x7f800000}}},
      {"equal",
       [](double a, double b) { return a == b ? 1.0 : 0.0; },
       1,
       0,
       {{1, 1, 0x3f800000}, {1, 2, 0}, {-0.0f, 0, 0x3f800000}, {kAnyNan, kAnyNan, 0}}},
      {"greater",
       [](double a, double b) { return a > b ? 1.0 : 0.0; },
       1,
       0,
       {{2, 1, 0x3f800000}, {1, 1, 0}, {kAnyNan, 1, 0}}},
      {"greater_or_equal",
       [](double a, double b) { return a >= b ? 1.0 : 0.0; },
       1,
       0,
       {{2, 1, 0x3f800000}, {1, 1, 0x3f800000}, {kAnyNan, 1, 0}}},
  };
  return kTruths;
}

/// `body(operator, rule, truth)` for every row of the table.
template <class Body>
void for_each_rule(const Body& body) {
  for (const BinaryRule& rule : binary_rules()) {
    INFO(rule.kind);
    const Truth* truth = nullptr;
    for (const Truth& t : truths()) {
      if (t.kind == rule.kind) truth = &t;
    }
    REQUIRE(truth != nullptr);
    Binary op(rule);
    body(op, rule, *truth);
  }
}

/// The element of a tensor of that shape that element i of the result reads: coordinates from the
/// last axis on, 0 along axes of extent 1.
std::int64_t place(const Shape& shape, const Shape& result, std::int64_t i) {
  std::int64_t offset = 0, stride = 1;
  for (std::size_t back = 1; back <= result.size(); ++back) {
    const std::int64_t coordinate = i % result[result.size() - back];
    i /= result[result.size() - back];
    if (back > shape.size()) continue;
    const std::int64_t extent = shape[shape.size() - back];
    offset += extent == 1 ? 0 : coordinate * stride;
    stride *= extent;
  }
  return offset;
}

TEST_CASE("operators of two inputs equal their float64 functions under broadcasting", "[fast]") {
  const std::vector<std::vector<Shape>> cases{{{2, 3, 4}, {2, 3, 4}}, {{2, 3, 4}, {4}},
                                              {{1}, {2, 3, 4}},       {{2, 1, 4}, {3, 1}},
                                              {{2, 3, 1}, {2, 1, 4}}, {{}, {5}}};
  for_each_rule([&](Binary& op, const BinaryRule& rule, const Truth& truth) {
    for (const std::vector<Shape>& shapes : cases) {
      std::vector<Tensor> inputs{test::random_tensor(shapes[0], 1),
                                 test::random_tensor(shapes[1], 2)};
      for (Tensor& input : inputs) {
        for (float& v : input.data)
          v = static_cast<float>((rule.low + rule.high) / 2 + (rule.high - rule.low) / 2 * v);
      }
      // Their steps are where a is a multiple of b: quotients from 1.5 to 1.9 have none.
      if (rule.kind == "modulo" || rule.kind == "remainder" || rule.kind == "quotient") {
        for (float& v : inputs[1].data) v *= 0.6f;
      }
      const Shape y = op.output_shape(shapes);
      const auto reference = [&](const std::vector<test::Doubles>& arguments) {
        test::Doubles result;
        for (std::int64_t i = 0; i < element_count(y); ++i) {
          result.push_back(
              truth.f(arguments[0][place(shapes[0], y, i)], arguments[1][place(shapes[1], y, i)]));
        }
        return result;
      };
      CAPTURE(to_string(shapes[0]), to_string(shapes[1]));
      // Sums of at most 24 gradients, each rounded.
      test::check_op(op, inputs, reference, truth.size * 24 * 0x1p-23, {.third = 24 * truth.third});
    }
  });
}

TEST_CASE("operators of two inputs of special values", "[fast]") {
  for_each_rule([](Binary& op, const BinaryRule& rule, const Truth& truth) {
    for (const Special& special : truth.special) {
      CAPTURE(special.a, special.b);
      Numerics numerics;
      const std::vector<Tensor> inputs{Tensor({1}, special.a), Tensor({1}, special.b)};
      CHECK(test::bits(test::run_op(op, inputs, numerics).output)[0] == special.y);
    }
    // NaN to the power 0 is 1, and no comparison with NaN holds.
    if (rule.kind == "power" || rule.kind == "equal" || rule.kind.starts_with("greater")) return;
    Numerics numerics;
    CHECK(
        test::bits(test::run_op(op, {Tensor({1}, kAnyNan), Tensor({1}, 1)}, numerics).output)[0] ==
        kNan);
  });
}

TEST_CASE("operators of two inputs have the same bits on any number of threads", "[fast]") {
  for_each_rule([](Binary& op, const BinaryRule&, const Truth&) {
    for (const Shape& shape : {Shape{150, 100}, Shape{100}, Shape{150, 1}})
      test::check_threads(op, {test::random_tensor({150, 100}, 2), test::random_tensor(shape, 3)});
  });
}

TEST_CASE("operators of two inputs refuse shapes that do not broadcast", "[fast]") {
  const std::vector<Shape> wrong{{2, 3}, {2}}, one{{2}};
  for_each_rule([&](Binary& op, const BinaryRule& rule, const Truth&) {
    CHECK_THROWS_WITH(op.output_shape(wrong),
                      Catch::Contains(std::string(rule.kind)) && Catch::Contains("[2, 3], [2]"));
    CHECK_THROWS_WITH(op.output_shape(one), Catch::Contains("two inputs"));
  });
  CHECK_THROWS_WITH(Binary("ad"), Catch::Contains("did you mean 'add'?"));
}

TEST_CASE("the gradients of power at base 0 are finite where the function is smooth", "[fast]") {
  Tensor a({3}), b({3});
  a.data = {0, 0, -3};
  b.data = {0, 2, 2};
  Numerics numerics;
  const test::OpResult result = test::run_op(Binary("power"), {a, b}, numerics);
  CHECK(result.grad_inputs[0].data == std::vector<float>{0, 0, -6 * result.grad_output.data[2]});
  CHECK(result.grad_inputs[1].data[0] == 0);
  CHECK(result.grad_inputs[1].data[1] == 0);
}

TEST_CASE("equal elements share the gradient of an extreme", "[fast]") {
  for (const char* kind : {"maximum", "minimum"}) {
    Numerics numerics;
    const test::OpResult result =
        test::run_op(Binary(kind), {Tensor({1}, 2), Tensor({1}, 2)}, numerics);
    for (const Tensor& gradient : result.grad_inputs)
      CHECK(gradient.data[0] == result.grad_output.data[0] / 2);
  }
}

TEST_CASE("docs/networks.md has a line for every operator of two inputs", "[fast]") {
  const std::string docs = read_text(NUMEMU_SOURCE "/docs/networks.md");
  for (const BinaryRule& rule : binary_rules()) {
    std::string reads = test::reading_text("a", rule.uses[0]);
    if (rule.uses[1]) reads += " " + test::reading_text("b", rule.uses[1]);
    const std::string line = fmt::format("| `{}` | {} | {} | {} |", rule.kind, rule.formula, reads,
                                         rule.onnx.empty() ? "" : fmt::format("`{}`", rule.onnx));
    INFO(line);
    CHECK(docs.find(line + "\n") != std::string::npos);
  }
}

TEST_CASE("where and its gradients", "[fast]") {
  Where op;
  Tensor condition({2, 1, 5});
  condition.data = {0, 1, -2, 0, 0.5f, 1, 1, 0, 0, 0};
  const std::vector<Tensor> inputs{condition, test::random_tensor({3, 5}, 1),
                                   test::random_tensor({1}, 2)};
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (int n = 0; n < 2; ++n) {
      for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 5; ++c)  // by the condition itself, which the differences leave alone
          y.push_back(condition.data[n * 5 + c] != 0 ? arguments[1][r * 5 + c] : arguments[2][0]);
      }
    }
    return y;
  };
  constexpr double kTolerance = 30 * 0x1p-24;  // a sum of at most 30 gradients below 1, rounded
  test::check_op(op, inputs, reference, kTolerance);
}

TEST_CASE("multiply_add rounds once, and its gradients", "[fast]") {
  // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46, which two roundings lose.
  Tensor a({1}, 1 + 0x1p-23f), c({1}, -(1 + 0x1p-22f));
  Numerics numerics;
  CHECK(test::run_op(MultiplyAdd(), {a, a, c}, numerics).output.data[0] == 0x1p-46f);
  const std::vector<Tensor> inputs{test::random_tensor({2, 1, 5}, 1),
                                   test::random_tensor({3, 5}, 2), test::random_tensor({1}, 3)};
  const auto reference = [&](const std::vector<test::Doubles>& arguments) {
    test::Doubles y;
    for (int n = 0; n < 2; ++n)
      for (int r = 0; r < 3; ++r)
        for (int k = 0; k < 5; ++k)
          y.push_back(arguments[0][n * 5 + k] * arguments[1][r * 5 + k] + arguments[2][0]);
    return y;
  };
  constexpr double kTolerance = 30 * 0x1p-24;  // a sum of at most 30 gradients below 1, rounded
  MultiplyAdd op;
  test::check_op(op, inputs, reference, kTolerance);
  const std::vector<Shape> two{{2}, {2}};
  CHECK_THROWS_WITH(MultiplyAdd().output_shape(two), Catch::Contains("three"));
}

TEST_CASE("where takes NaN for true and gives the neutral NaN", "[fast]") {
  Tensor condition({3}), a({3}), b({3}, 2);
  condition.data = {kAnyNan, -0.0f, kInfinity};
  a.data = {5, 5, kAnyNan};
  Numerics numerics;
  CHECK(test::bits(test::run_op(Where(), {condition, a, b}, numerics).output) ==
        std::vector<std::uint32_t>{0x40a00000, 0x40000000, 0x7fc00000});
  const std::vector<Shape> two{{2}, {2}}, wrong{{2}, {3}, {1}};
  CHECK_THROWS_WITH(Where().output_shape(two), Catch::Contains("three"));
  CHECK_THROWS_WITH(Where().output_shape(wrong), Catch::Contains("[2], [3], [1]"));
}

}  // namespace

}  // namespace numemu::net::binary_test
