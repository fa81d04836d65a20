// Activations beside ReLU, GELU and SiLU, functions of angles, rounding.
#include <cmath>
#include <limits>

#include "emu/net/math.hpp"
#include "emu/net/ops/pointwise_row.hpp"
#include "formats/portable/vector_functions.hpp"

namespace numemu::net {
namespace {

using Numbers = PointwiseNumbers;
using Reads = PointwiseRule::Reads;
using pointwise::row;

constexpr float kLargest = std::numeric_limits<float>::max();
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

constexpr PointwiseRule kFunctions[] = {
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

}  // namespace

std::span<const PointwiseRule> pointwise_functions() { return kFunctions; }

}  // namespace numemu::net
