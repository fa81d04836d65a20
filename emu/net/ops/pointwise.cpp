#include "emu/net/ops/pointwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "emu/net/math.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

using Numbers = PointwiseNumbers;
using Reads = PointwiseRule::Reads;

/// `function` of the arguments, and of the numbers if it has any.
template <class Function, class... Arguments>
[[gnu::always_inline]] inline float element(PointwiseNumbers numbers, Arguments... arguments) {
  if constexpr (std::is_invocable_v<Function, Arguments...>) {
    return neutral(static_cast<float>(Function{}(arguments...)));
  } else {
    return neutral(static_cast<float>(Function{}(arguments..., numbers)));
  }
}

/// The rule with its loops: F is f of x, D is g times the derivative, of g and what it reads; the
/// numbers come last in each.
template <class F, class D>
constexpr PointwiseRule row(PointwiseRule rule, F, D) {
  rule.values = [](std::int64_t n, const float* x, float* y, PointwiseNumbers numbers) {
    for_each_element(n, [=](std::int64_t i) { y[i] = element<F>(numbers, x[i]); });
  };
  rule.gradients = [](std::int64_t n, const float* seen, const float* g, float* dx,
                      PointwiseNumbers numbers) {
    for_each_element(n, [=](std::int64_t i) {
      if constexpr (std::is_invocable_v<D, float>) {
        dx[i] = element<D>(numbers, g[i]);
      } else {
        dx[i] = element<D>(numbers, g[i], seen[i]);
      }
    });
  };
  return rule;
}

constexpr float kLargest = std::numeric_limits<float>::max();

// Beyond these the result is x or rounds to 0, and the derivative to 1 or 0. Where the limit is 0,
// -inf times 0 would be NaN.
constexpr double kFarGelu = 20, kFarSilu = 120;
[[gnu::always_inline]] inline double held(double x, double far) { return x < -far ? -far : x; }

constexpr double kTwoBySqrtPi = 0x1.20dd750429b6dp+0;
constexpr double kSqrtTwoByPi = 0x1.9884533d43651p-1;
constexpr double kInverseSqrtTwoPi = 0x1.9884533d43651p-2;
constexpr double kCubic = 0.044715;

// (1 + tanh u) / 2 is the logistic function of 2 u; this is 2 u of the approximated gelu.
[[gnu::always_inline]] inline double twice_inner(double x) {
  return 2 * kSqrtTwoByPi * (x + kCubic * (x * x * x));
}

constexpr auto kPositive = [](Numbers numbers) { return numbers[0] > 0 && numbers[0] <= kLargest; };
constexpr auto kFinite = [](Numbers numbers) {
  return std::isfinite(numbers[0]) && std::isfinite(numbers[1]);
};

// The constants of the paper (Klambauer et al. 2017), as ONNX rounds them.
constexpr float kSeluAlpha = 1.67326319217681884765625f, kSeluScale = 1.05070102214813232421875f;

/// tanh(softplus(x)) = e (e + 2) / (e (e + 2) + 2) with e = e^x.
[[gnu::always_inline]] inline double mish_gate(double x) {
  const double e = core::exp(x > 40 ? 40 : x), p = e * (e + 2);
  return p / (p + 2);
}
// Beyond this mish rounds to 0; -inf times 0 would be NaN.
constexpr double kFarMish = 120;

constexpr PointwiseRule kPointwiseRules[] = {
    row(
        {.kind = "relu",
         .onnx = "Relu",
         .formula = "x if x > 0, else +0",
         .reads = Reads::y,
         .use = Use::sign,
         .low = -1,
         .high = 1,
         .on_codes = OnCodes::bounds},
        [](float x) { return x <= 0 ? 0 : x; }, [](float g, float y) { return y <= 0 ? 0 : g; }),
    row(
        {.kind = "leaky_relu",
         .onnx = "LeakyRelu",
         .formula = "x if x > 0, else slope x",
         .reads = Reads::x,
         .use = Use::sign,
         .low = -1,
         .high = 1,
         .parameters = {{{"slope", "alpha", 0.01f}}},
         .accepts = [](Numbers numbers) { return std::isfinite(numbers[0]); },
         .expected = "a finite slope",
         .on_codes = OnCodes::computes},
        [](float x, Numbers numbers) {
          const float scaled = numbers[0] * x;
          return x > 0 ? x : scaled;
        },
        [](float g, float x, Numbers numbers) {
          const float scaled = numbers[0] * g;
          return x > 0 ? g : scaled;
        }),
    // Infinite bounds do not bind. The gradient passes between the bounds and through NaN.
    row(
        {.kind = "clip",
         .onnx = "Clip",
         .formula = "min(max(x, low), high); ReLU6",
         .reads = Reads::y,
         .use = Use::index,
         .low = -1,
         .high = 1,
         .parameters = {{{"low", "min", -kLargest}, {"high", "max", kLargest}}},
         .accepts =
             [](Numbers numbers) { return !std::isnan(numbers[0]) && !std::isnan(numbers[1]); },
         .expected = "low and high that are numbers",
         .on_codes = OnCodes::bounds},
        [](float x, Numbers numbers) {
          const float above = x < numbers[0] ? numbers[0] : x;
          return above > numbers[1] ? numbers[1] : above;
        },
        [](float g, float y, Numbers numbers) {
          const float kept = y <= numbers[0] ? 0 : g;
          return y >= numbers[1] ? 0 : kept;
        }),
    row(
        {"gelu", "", "x Phi(x)", Reads::x, Use::statistic, -6, 6},
        [](double x) {
          const double v = held(x, kFarGelu);
          return v * core::normal_cdf(v);
        },
        [](float g, double seen) {
          const double x = core::clamp(seen, -kFarGelu, kFarGelu), e = core::exp(-0.5 * x * x);
          return g * (core::normal_cdf(x, e) + x * (kInverseSqrtTwoPi * e));
        }),
    // Hendrycks and Gimpel 2016.
    row(
        {"gelu_tanh", "", "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))", Reads::x,
         Use::statistic, -6, 6},
        [](double x) {
          const double v = held(x, kFarGelu);
          return v * core::sigmoid(twice_inner(v));
        },
        [](float g, double seen) {
          const double x = core::clamp(seen, -kFarGelu, kFarGelu),
                       s = core::sigmoid(twice_inner(x));
          const double slope = 2 * kSqrtTwoByPi * (1 + 3 * kCubic * (x * x));
          return g * (s + x * (s * (1 - s) * slope));
        }),
    row(
        {"silu", "", "x / (1 + e^-x)", Reads::x, Use::statistic, -8, 8},
        [](double x) { return held(x, kFarSilu) * core::sigmoid(x); },
        [](float g, double seen) {
          const double x = core::clamp(seen, -kFarSilu, kFarSilu), s = core::sigmoid(x);
          return g * (s + x * (s * (1 - s)));
        }),
    row(
        {"sigmoid", "Sigmoid", "1 / (1 + e^-x)", Reads::y, Use::statistic, -8, 8},
        [](double x) { return core::sigmoid(x); },
        [](float g, double y) { return g * (y * (1 - y)); }),
    row(
        {"tanh", "Tanh", "tanh x", Reads::y, Use::statistic, -4, 4},
        [](double x) { return core::tanh(x); }, [](float g, double y) { return g * (1 - y * y); }),
    row(
        {"erf", "Erf", "2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x", Reads::x,
         Use::statistic, -4, 4},
        [](double x) { return core::erf(x); },
        [](float g, double x) { return g * (kTwoBySqrtPi * core::exp(-x * x)); }),
    row(
        {"exp", "Exp", "e^x", Reads::y, Use::linear, -4, 2}, [](double x) { return core::exp(x); },
        [](float g, float y) { return g * y; }),
    row(
        {"log", "Log", "ln x; -inf for 0, NaN below", Reads::x, Use::statistic, 0.5, 4.5},
        [](double x) { return core::log(x); }, [](float g, float x) { return g / x; }),
    row(
        {"abs", "Abs", "the magnitude of x; derivative 0 at 0", Reads::x, Use::sign, -1, 1},
        [](float x) { return std::fabs(x); },
        [](float g, float x) {
          const float side = x > 0 ? g : -g;
          return x == 0 ? 0 : side;
        }),
    row(
        {"sqrt", "Sqrt", "the square root of x; NaN below 0", Reads::y, Use::statistic, 0.5, 4.5},
        [](float x) { return std::sqrt(x); }, [](float g, double y) { return g * (0.5 / y); }),
    row(
        {"reciprocal", "Reciprocal", "1 / x", Reads::y, Use::statistic, 0.5, 4.5},
        [](float x) { return 1 / x; }, [](float g, double y) { return -g * (y * y); }),
    row(
        {"negate", "Neg", "-x", Reads::nothing, Use::linear, -4, 4}, [](float x) { return -x; },
        [](float g) { return -g; }),
    // Activations beside ReLU, GELU and SiLU, functions of angles, rounding.
    row(
        {.kind = "elu",
         .onnx = "Elu",
         .formula = "x if x >= 0, else slope (e^x - 1)",
         .reads = Reads::x,
         .use = Use::statistic,
         .low = -4,
         .high = 4,
         .parameters = {{{"slope", "alpha", 1}}},
         .accepts = kFinite,
         .expected = "a finite slope"},
        [](double x, Numbers numbers) {
          const double below = numbers[0] * core::expm1_negative(x < 0 ? x : 0);
          return x < 0 ? below : x;
        },
        [](float g, double x, Numbers numbers) {
          return g * (x > 0 ? 1 : numbers[0] * core::exp(x));
        }),
    row(
        {.kind = "selu",
         .onnx = "Selu",
         .formula = "scale (x if x >= 0, else slope (e^x - 1))",
         .reads = Reads::x,
         .use = Use::statistic,
         .low = -4,
         .high = 4,
         .parameters = {{{"slope", "alpha", kSeluAlpha}, {"scale", "gamma", kSeluScale}}},
         .accepts = kFinite,
         .expected = "a finite slope and scale"},
        [](double x, Numbers numbers) {
          const double below = numbers[0] * core::expm1_negative(x < 0 ? x : 0);
          return numbers[1] * (x < 0 ? below : x);
        },
        [](float g, double x, Numbers numbers) {
          return g * (numbers[1] * (x > 0 ? 1 : numbers[0] * core::exp(x)));
        }),
    row(
        {.kind = "celu",
         .onnx = "Celu",
         .formula = "x if x >= 0, else width (e^(x / width) - 1)",
         .reads = Reads::x,
         .use = Use::statistic,
         .low = -4,
         .high = 4,
         .parameters = {{{"width", "alpha", 1}}},
         .accepts = kPositive,
         .expected = "a positive width"},
        [](double x, Numbers numbers) {
          const double width = numbers[0];
          const double below = width * core::expm1_negative((x < 0 ? x : 0) / width);
          return x < 0 ? below : x;
        },
        [](float g, double x, Numbers numbers) {
          return g * (x > 0 ? 1 : core::exp(x / numbers[0]));
        }),
    row(
        {"softplus", "Softplus", "ln(1 + e^x)", Reads::x, Use::statistic, -8, 8},
        [](double x) { return core::softplus(x); },
        [](float g, double x) { return g * core::sigmoid(x); }),
    row(
        {"softsign", "Softsign", "x over 1 + its magnitude", Reads::x, Use::statistic, -4, 4},
        [](double x) {
          const double v = core::clamp(x, -0x1p60, 0x1p60);
          return v / (1 + std::fabs(v));
        },
        [](float g, double x) {
          const double d = 1 + std::fabs(x);
          return g / (d * d);
        }),
    row(
        {"mish", "Mish", "x tanh(ln(1 + e^x))", Reads::x, Use::statistic, -8, 8},
        [](double x) { return (x < -kFarMish ? -kFarMish : x) * mish_gate(x); },
        [](float g, double seen) {
          const double x = core::clamp(seen, -kFarMish, kFarMish), gate = mish_gate(x);
          return g * (gate + x * ((1 - gate * gate) * core::sigmoid(x)));
        }),
    row(
        {.kind = "thresholded_relu",
         .onnx = "ThresholdedRelu",
         .formula = "x if x > bound, else 0",
         .reads = Reads::x,
         .use = Use::index,
         .low = -1,
         .high = 3,
         .parameters = {{{"bound", "alpha", 1}}},
         .accepts = kFinite,
         .expected = "a finite bound"},
        [](float x, Numbers numbers) { return x <= numbers[0] ? 0 : x; },
        [](float g, float x, Numbers numbers) { return x <= numbers[0] ? 0 : g; }),
    row(
        {.kind = "shrink",
         .onnx = "Shrink",
         .formula = "x + shift if x < -bound, x - shift if x > bound, else 0",
         .reads = Reads::x,
         .use = Use::index,
         .low = 1,
         .high = 3,
         .parameters = {{{"bound", "lambd", 0.5f}, {"shift", "bias", 0}}},
         .accepts = kFinite,
         .expected = "a finite bound and shift"},
        [](float x, Numbers numbers) {
          const float below = x + numbers[1], above = x - numbers[1];
          const float inside = x == x ? 0 : x;
          const float high = x > numbers[0] ? above : inside;
          return x < -numbers[0] ? below : high;
        },
        [](float g, float x, Numbers numbers) {
          const float high = x > numbers[0] ? g : 0;
          return x < -numbers[0] ? g : high;
        }),
    row(
        {"sin", "Sin", "sin x", Reads::x, Use::statistic, -4, 4}, [](float x) { return sin(x); },
        [](float g, float x) { return g * cos(x); }),
    row(
        {"cos", "Cos", "cos x", Reads::x, Use::statistic, -4, 4}, [](float x) { return cos(x); },
        [](float g, float x) { return -g * sin(x); }),
    row(
        {"tan", "Tan", "tan x", Reads::y, Use::statistic, -1, 1}, [](float x) { return tan(x); },
        [](float g, double y) { return g * (1 + y * y); }),
    row(
        {"asin", "Asin", "arc sine x; NaN beyond 1", Reads::x, Use::statistic, -0.75, 0.75},
        [](double x) { return core::atan(x / std::sqrt((1 - x) * (1 + x))); },
        [](float g, double x) { return g / std::sqrt((1 - x) * (1 + x)); }),
    row(
        {"acos", "Acos", "arc cosine x; NaN beyond 1", Reads::x, Use::statistic, -0.75, 0.75},
        [](double x) { return 2 * core::atan(std::sqrt((1 - x) / (1 + x))); },
        [](float g, double x) { return -g / std::sqrt((1 - x) * (1 + x)); }),
    row(
        {"atan", "Atan", "arc tangent x", Reads::x, Use::statistic, -4, 4},
        [](double x) { return core::atan(x); }, [](float g, double x) { return g / (1 + x * x); }),
    row(
        {"sinh", "Sinh", "(e^x - e^-x) / 2", Reads::x, Use::statistic, -3, 3},
        [](double x) {
          // Below 2^-6 the difference would cancel; the first omitted term is below 2^-48 of x.
          const double small = x * (1 + x * x * (1.0 / 6 + x * x * (1.0 / 120)));
          const double far = 0.5 * (core::exp(x) - core::exp(-x));
          return std::fabs(x) < 0x1p-6 ? small : far;
        },
        [](float g, double x) { return g * (0.5 * (core::exp(x) + core::exp(-x))); }),
    row(
        {"cosh", "Cosh", "(e^x + e^-x) / 2", Reads::x, Use::statistic, -3, 3},
        [](double x) { return 0.5 * (core::exp(x) + core::exp(-x)); },
        [](float g, double x) { return g * (0.5 * (core::exp(x) - core::exp(-x))); }),
    row(
        {"asinh", "Asinh", "ln(x + sqrt(x^2 + 1))", Reads::x, Use::statistic, -4, 4},
        [](double x) {
          const double size = core::clamp(std::fabs(x), 0, 0x1p300), square = size * size;
          const double y = core::log1p(size + square / (1 + std::sqrt(1 + square)));
          return std::fabs(x) == __builtin_inf() ? x : std::copysign(y, x);
        },
        [](float g, double x) { return g / std::sqrt(1 + x * x); }),
    row(
        {"acosh", "Acosh", "ln(x + sqrt(x^2 - 1)); NaN below 1", Reads::x, Use::statistic, 1.5, 4},
        [](double x) {
          const double above = core::clamp(x, -0x1p300, 0x1p300) - 1;
          const double y = core::log1p(above + std::sqrt(above * (above + 2)));
          const double least = x < 1 ? __builtin_nan("") : y;
          return x == __builtin_inf() ? x : least;
        },
        [](float g, double x) { return g / std::sqrt((x - 1) * (x + 1)); }),
    row(
        {"atanh", "Atanh", "ln((1 + x) / (1 - x)) / 2; NaN beyond 1", Reads::x, Use::statistic,
         -0.75, 0.75},
        [](double x) {
          const double size = std::fabs(x), y = 0.5 * core::log1p(2 * size / (1 - size));
          const double end = size == 1 ? __builtin_inf() : __builtin_nan("");
          return std::copysign(size < 1 ? y : end, x);
        },
        [](float g, double x) { return g / ((1 - x) * (1 + x)); }),
    row(
        {"floor", "Floor", "the largest integer up to x; derivative 0", Reads::nothing, Use::linear,
         0.25, 0.75},
        [](float x) { return std::floor(x); }, [](float) { return 0.0f; }),
    row(
        {"ceil", "Ceil", "the smallest integer from x on; derivative 0", Reads::nothing,
         Use::linear, 0.25, 0.75},
        [](float x) { return std::ceil(x); }, [](float) { return 0.0f; }),
    row(
        {"round", "Round", "the nearest integer, halves to even; derivative 0", Reads::nothing,
         Use::linear, 0.75, 1.25},
        [](float x) { return std::nearbyint(x); }, [](float) { return 0.0f; }),
    row(
        {"truncate", "", "the integer part of x; derivative 0", Reads::nothing, Use::linear, 0.25,
         0.75},
        [](float x) { return std::trunc(x); }, [](float) { return 0.0f; }),
    row(
        {"sign", "Sign", "1, 0 or -1; derivative 0", Reads::nothing, Use::linear, 0.25, 0.75},
        [](float x) {
          const float side = x > 0 ? 1.0f : -1.0f;
          return x == 0 || x != x ? x * 0 : side;
        },
        [](float) { return 0.0f; }),
};

const PointwiseRule& find_pointwise(std::string_view kind) {
  return find_named("elementwise operator", kind, kPointwiseRules, &PointwiseRule::kind);
}

}  // namespace

std::span<const PointwiseRule> pointwise_rules() { return kPointwiseRules; }

Pointwise::Pointwise(std::string_view kind)
    : Pointwise(kind, {find_pointwise(kind).parameters[0].value,
                       find_pointwise(kind).parameters[1].value}) {}

Pointwise::Pointwise(std::string_view kind, PointwiseNumbers numbers)
    : Pointwise(find_pointwise(kind), numbers) {}

Pointwise::Pointwise(const PointwiseRule& rule, PointwiseNumbers numbers)
    : Op({.kind = rule.kind,
          .inputs = every_input(rule.reads == Reads::x ? std::optional(rule.use) : std::nullopt),
          .output = rule.reads == Reads::y ? std::optional(rule.use) : std::nullopt,
          .in_place = true,
          .on_codes = rule.on_codes}),
      rule_(rule),
      numbers_(numbers) {
  if (rule.accepts == nullptr || rule.accepts(numbers)) return;
  throw Error(
      fmt::format("{}: expected {}, got {}{}", rule.kind, rule.expected, numbers[0],
                  rule.parameters[1].name == nullptr ? "" : fmt::format(" and {}", numbers[1])));
}

Shape Pointwise::output_shape(Shapes inputs) const {
  if (inputs.size() != 1)
    throw Error(fmt::format("{}: expected one input, got {}", kind(), inputs.size()));
  return inputs[0];
}

void Pointwise::forward(const OpCall&, OpInputs inputs, Tensor& output) const {
  rule_.values(output.size(), inputs[0]->data.data(), output.data.data(), numbers_);
}

void Pointwise::backward(const OpCall&, const OpBackward& back) const {
  if (!back.want_inputs) return;
  const Tensor* const seen = rule_.reads == Reads::x ? back.inputs[0] : back.output;
  rule_.gradients(back.grad_output.size(),
                  rule_.reads == Reads::nothing ? nullptr : seen->data.data(),
                  back.grad_output.data.data(), back.grad_inputs[0].data.data(), numbers_);
}

}  // namespace numemu::net
