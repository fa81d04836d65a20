#include "emu/net/ops/binary.hpp"

#include <array>
#include <cmath>
#include <type_traits>

#include "emu/net/math.hpp"
#include "emu/net/ops/broadcast.hpp"
#include "emu/net/ops/sums.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

[[gnu::always_inline]] inline float rounded(auto x) { return neutral(static_cast<float>(x)); }

/// The rule with its loops: F is f of a and b; Da and Db are g times the derivatives, of g, a and b
/// or of g alone, where the rule has no uses.
template <class F, class Da, class Db>
constexpr BinaryRule row(BinaryRule rule, F, Da, Db) {
  if (std::is_invocable_v<Da, float> == (rule.uses[0] || rule.uses[1]))
    throw Error("the uses of a rule and the arguments of its derivatives differ");
  rule.values = [](std::int64_t n, const float* a, const float* b, float* y) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = rounded(F{}(a[i], b[i]));
  };
  rule.gradients = [](std::int64_t n, const float* a, const float* b, const float* g, float* da,
                      float* db) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_invocable_v<Da, float>) {
        da[i] = rounded(Da{}(g[i]));
        db[i] = rounded(Db{}(g[i]));
      } else {
        da[i] = rounded(Da{}(g[i], a[i], b[i]));
        db[i] = rounded(Db{}(g[i], a[i], b[i]));
      }
    }
  };
  return rule;
}

constexpr BinaryRule kBinaryRules[] = {
    row(
        {.kind = "add",
         .onnx = "Add",
         .formula = "a + b",
         .low = -1,
         .high = 1,
         .on_codes = OnCodes::adds},
        [](float a, float b) { return a + b; }, [](float g) { return g; },
        [](float g) { return g; }),
    row(
        {"subtract", "Sub", "a - b", -1, 1}, [](float a, float b) { return a - b; },
        [](float g) { return g; }, [](float g) { return -g; }),
    row(
        {.kind = "multiply",
         .onnx = "Mul",
         .formula = "a b",
         .low = -1,
         .high = 1,
         .uses = {Use::linear, Use::linear}},
        [](float a, float b) { return a * b; }, [](float g, float, float b) { return g * b; },
        [](float g, float a, float) { return g * a; }),
    row(
        {.kind = "divide",
         .onnx = "Div",
         .formula = "a / b",
         .low = 1,
         .high = 3,
         .uses = {Use::linear, Use::statistic}},
        [](float a, float b) { return a / b; }, [](float g, float, float b) { return g / b; },
        [](float g, double a, double b) { return -g * (a / (b * b)); }),
    // The derivative of a^0 is 0 at a = 0 too; that of 0^b is 0 for b >= 0.
    row(
        {.kind = "power",
         .onnx = "Pow",
         .formula = "a^b",
         .low = 1,
         .high = 2,
         .uses = {Use::statistic, Use::statistic}},
        [](float a, float b) { return pow(a, b); },
        [](float g, float a, float b) { return g * (b == 0 ? 0 : double{b} * pow(a, b - 1)); },
        [](float g, float a, float b) {
          return a == 0 && b >= 0 ? 0 : g * (pow(a, b) * core::log(a));
        }),
    // NaN where either is NaN. Equal elements share the gradient.
    row(
        {.kind = "maximum",
         .onnx = "Max",
         .formula = "the larger one",
         .low = -1,
         .high = 1,
         .uses = {Use::index, Use::index}},
        [](float a, float b) {
          const float larger = a > b ? a : b;
          return a != a ? a : larger;
        },
        [](float g, float a, float b) { return a == b  ? g / 2
                                               : a > b ? g
                                                       : 0; },
        [](float g, float a, float b) { return a == b  ? g / 2
                                               : b > a ? g
                                                       : 0; }),
    row(
        {.kind = "minimum",
         .onnx = "Min",
         .formula = "the smaller one",
         .low = -1,
         .high = 1,
         .uses = {Use::index, Use::index}},
        [](float a, float b) {
          const float smaller = a < b ? a : b;
          return a != a ? a : smaller;
        },
        [](float g, float a, float b) { return a == b  ? g / 2
                                               : a < b ? g
                                                       : 0; },
        [](float g, float a, float b) { return a == b  ? g / 2
                                               : b < a ? g
                                                       : 0; }),
    row(
        {.kind = "prelu",
         .onnx = "PRelu",
         .formula = "a if a > 0, else b a",
         .low = -1,
         .high = 1,
         .uses = {Use::statistic, Use::linear}},
        [](float a, float b) {
          const float scaled = b * a;
          return a > 0 ? a : scaled;
        },
        [](float g, float a, float b) {
          const float scaled = g * b;
          return a > 0 ? g : scaled;
        },
        [](float g, float a, float) { return a > 0 ? 0 : g * a; }),
    row(
        {.kind = "modulo",
         .onnx = "Mod",
         .formula = "a - b floor(a / b), exact",
         .low = 1,
         .high = 1.1,
         .uses = {Use::index, Use::index}},
        [](float a, float b) {
          const double rest = std::fmod(double{a}, double{b});
          return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
        },
        [](float g, float, float) { return g; },
        [](float g, double a, double b) { return -g * std::floor(a / b); }),
    row(
        {.kind = "remainder",
         .onnx = "",
         .formula = "a - b trunc(a / b), exact",
         .low = 1,
         .high = 1.1,
         .uses = {Use::index, Use::index}},
        [](float a, float b) { return std::fmod(a, b); }, [](float g, float, float) { return g; },
        [](float g, double a, double b) { return -g * std::trunc(a / b); }),
    row(
        {"quotient", "", "trunc(a / b); derivatives 0", 1, 1.1},
        [](double a, double b) { return std::trunc(a / b); }, [](float) { return 0.0f; },
        [](float) { return 0.0f; }),
    row(
        {"equal", "Equal", "1 if a = b, else 0; derivatives 0", -1, 1},
        [](float a, float b) { return a == b ? 1.0f : 0.0f; }, [](float) { return 0.0f; },
        [](float) { return 0.0f; }),
    row(
        {"greater", "Greater", "1 if a > b, else 0; derivatives 0", -1, 1},
        [](float a, float b) { return a > b ? 1.0f : 0.0f; }, [](float) { return 0.0f; },
        [](float) { return 0.0f; }),
    row(
        {"greater_or_equal", "GreaterOrEqual", "1 if a >= b, else 0; derivatives 0", -1, 1},
        [](float a, float b) { return a >= b ? 1.0f : 0.0f; }, [](float) { return 0.0f; },
        [](float) { return 0.0f; }),
};

const BinaryRule& find_binary(std::string_view kind) {
  return find_named("operator of two inputs", kind, kBinaryRules, &BinaryRule::kind);
}

}  // namespace

std::span<const BinaryRule> binary_rules() { return kBinaryRules; }

Binary::Binary(std::string_view kind) : Binary(find_binary(kind)) {}

Shape Binary::output_shape(Shapes inputs) const {
  if (inputs.size() != 2) {
    throw Error(std::string(kind()) + ": expected two inputs, got " +
                std::to_string(inputs.size()));
  }
  return Broadcast(kind(), inputs).shape();
}

void Binary::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  const std::array<Shape, 2> shapes{inputs[0]->shape, inputs[1]->shape};
  const std::array<const float*, 2> data{inputs[0]->data.data(), inputs[1]->data.data()};
  float* const y = output.data.data();
  Broadcast(kind(), shapes)
      .for_each_run(data, [&](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        rule_.values(n, runs[0], runs[1], y + first);
      });
}

void Binary::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const std::array<Shape, 3> shapes{back.grad_inputs[0].shape, back.grad_inputs[1].shape,
                                    back.grad_output.shape};
  std::array<const float*, 3> data{nullptr, nullptr, back.grad_output.data.data()};
  std::array<Tensor, 2> repeated;  // gradients before their sums
  std::array<float*, 2> gradient;
  for (int k = 0; k < 2; ++k) {
    if (rule_.uses[k]) data[k] = back.inputs[k]->data.data();
    const bool whole = back.grad_inputs[k].size() == back.grad_output.size();
    if (!whole) repeated[k] = Tensor(back.grad_output.shape);
    gradient[k] = whole ? back.grad_inputs[k].data.data() : repeated[k].data.data();
  }
  Broadcast(kind(), shapes)
      .for_each_run(data, [&](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        rule_.gradients(n, runs[0], runs[1], runs[2], gradient[0] + first, gradient[1] + first);
      });
  for (int k = 0; k < 2; ++k) {
    if (!repeated[k].shape.empty()) sum_to(repeated[k], back.grad_inputs[k]);
  }
}

namespace {

Shape shape_of_three(std::string_view kind, Shapes inputs) {
  if (inputs.size() != 3) {
    throw Error(std::string(kind) + ": expected three inputs, got " +
                std::to_string(inputs.size()));
  }
  return Broadcast(kind, inputs).shape();
}

/// y[i] = value(a[i], b[i], c[i])
template <class Value>
void for_three(std::string_view kind, OpInputs inputs, Tensor& output, const Value& value) {
  std::array<Shape, 3> shapes;
  std::array<const float*, 3> data;
  for (int k = 0; k < 3; ++k) {
    shapes[k] = inputs[k]->shape;
    data[k] = inputs[k]->data.data();
  }
  float* const y = output.data.data();
  Broadcast(kind, shapes)
      .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
        for (std::int64_t i = 0; i < n; ++i)
          y[first + i] = neutral(value(runs[0][i], runs[1][i], runs[2][i]));
      });
}

/// To an input that may have been broadcast: what its elements got is summed.
void give(const Tensor& gradient, Tensor& to) {
  if (to.size() == gradient.size()) {
    to.data = gradient.data;
  } else {
    sum_to(gradient, to);
  }
}

}  // namespace

Shape MultiplyAdd::output_shape(Shapes inputs) const { return shape_of_three(kind(), inputs); }

void MultiplyAdd::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  for_three(kind(), inputs, output, [](float a, float b, float c) { return std::fma(a, b, c); });
}

void MultiplyAdd::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  Tensor passed(back.grad_output.shape);
  float* const out = passed.data.data();
  for (int k = 0; k < 2; ++k) {
    const Tensor& other = *back.inputs[1 - k];
    const std::array<Shape, 2> shapes{other.shape, back.grad_output.shape};
    const std::array<const float*, 2> data{other.data.data(), back.grad_output.data.data()};
    Broadcast(kind(), shapes)
        .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
          for (std::int64_t i = 0; i < n; ++i) out[first + i] = neutral(runs[0][i] * runs[1][i]);
        });
    give(passed, back.grad_inputs[k]);
  }
  give(back.grad_output, back.grad_inputs[2]);
}

Shape Where::output_shape(Shapes inputs) const { return shape_of_three(kind(), inputs); }

void Where::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  for_three(kind(), inputs, output,
            [](float condition, float a, float b) { return condition != 0 ? a : b; });
}

void Where::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const std::array<Shape, 2> shapes{back.inputs[0]->shape, back.grad_output.shape};
  const std::array<const float*, 2> data{back.inputs[0]->data.data(), back.grad_output.data.data()};
  Tensor passed(back.grad_output.shape);
  float* const out = passed.data.data();
  for (int k = 1; k < 3; ++k) {
    const bool chosen = k == 1;
    Broadcast("where", shapes)
        .for_each_run(data, [=](std::int64_t first, std::int64_t n, const Broadcast::Runs& runs) {
          for (std::int64_t i = 0; i < n; ++i)
            out[first + i] = (runs[0][i] != 0) == chosen ? neutral(runs[1][i]) : 0;
        });
    give(passed, back.grad_inputs[k]);
  }
  std::fill(back.grad_inputs[0].data.begin(), back.grad_inputs[0].data.end(), 0.0f);
}

}  // namespace numemu::net
