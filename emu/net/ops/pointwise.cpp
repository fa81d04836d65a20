#include "emu/net/ops/pointwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "emu/net/ops/pointwise_row.hpp"
#include "formats/error.hpp"
#include "formats/portable/vector_functions.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

using Numbers = PointwiseNumbers;
using Reads = PointwiseRule::Reads;
using pointwise::row;

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

constexpr PointwiseRule kRules[] = {
    row(
        {"relu", "Relu", "x if x > 0, else +0", Reads::y, Use::sign, -1, 1},
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
         .expected = "a finite slope"},
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
         .accepts = [](Numbers numbers) { return numbers[0] <= numbers[1]; },
         .expected = "low <= high"},
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
};

const PointwiseRule& find(std::string_view kind) {
  return find_named("elementwise operator", kind, pointwise_rules(), &PointwiseRule::kind);
}

}  // namespace

std::span<const PointwiseRule> pointwise_rules() {
  static const std::vector<PointwiseRule> kAll = [] {
    std::vector<PointwiseRule> all(std::begin(kRules), std::end(kRules));
    const std::span<const PointwiseRule> more = pointwise_functions();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

Pointwise::Pointwise(std::string_view kind)
    : rule_(find(kind)), numbers_{rule_.parameters[0].value, rule_.parameters[1].value} {}

Pointwise::Pointwise(std::string_view kind, PointwiseNumbers numbers)
    : Pointwise(find(kind), numbers) {}

Pointwise::Pointwise(const PointwiseRule& rule, PointwiseNumbers numbers)
    : rule_(rule), numbers_(numbers) {
  if (rule.accepts == nullptr || rule.accepts(numbers)) return;
  throw Error(
      fmt::format("{}: expected {}, got {}{}", rule.kind, rule.expected, numbers[0],
                  rule.parameters[1].name == nullptr ? "" : fmt::format(" and {}", numbers[1])));
}

Shape Pointwise::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1)
    throw Error(fmt::format("{}: expected one input, got {}", kind(), inputs.size()));
  return inputs[0];
}

void Pointwise::forward(const OpCall&, std::span<const Tensor* const> inputs,
                        Tensor& output) const {
  rule_.values(output.size(), inputs[0]->data.data(), output.data.data(), numbers_);
}

void Pointwise::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor* output,
                         const Tensor& grad_output, std::span<Tensor> grad_inputs,
                         std::span<Tensor>, bool want_inputs) const {
  if (!want_inputs) return;
  const Tensor* const seen = rule_.reads == Reads::x ? inputs[0] : output;
  rule_.gradients(grad_output.size(), rule_.reads == Reads::nothing ? nullptr : seen->data.data(),
                  grad_output.data.data(), grad_inputs[0].data.data(), numbers_);
}

}  // namespace numemu::net
