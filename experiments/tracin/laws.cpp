// Laws of the gradients of samples whose operands are rounded at random.
#include <algorithm>

#include "experiments/tracin/samples.hpp"

namespace numemu::experiments::tracin {
namespace {

/// Squared lengths and summed variances of the columns of a sample's matrix.
struct Columns {
  std::vector<double> squares, variances;
};

Columns columns_of(const SampleOperand& operand, const StochasticLaw& law, double scale,
                   std::int64_t sample) {
  const auto positions = static_cast<std::size_t>(operand.positions());
  Columns columns{std::vector<double>(positions), std::vector<double>(positions)};
  const float* source = operand.data.data() + sample * operand.elements;
  std::vector<float> padded;
  const unit::Gather& gather = operand.gather;
  if (!gather.padding.identity()) {
    padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
    unit::pad(gather.padding, source, padded.data(), 0.0f);
    source = padded.data();
  }
  for (std::size_t p = 0; p < positions; ++p) {
    for (const std::int32_t row : gather.row) {
      const double x = source[row + gather.depth[p]];
      columns.squares[p] += x * x;
      columns.variances[p] += law.of(x, scale).variance;
    }
  }
  return columns;
}

}  // namespace

double one_draw_bias(const std::vector<LayerOperands>& operands, const Format& format,
                     const Rounding& rounding, std::int64_t sample) {
  const StochasticLaw law(format, rounding);
  double bias = 0;
  for (const LayerOperands& layer : operands) {
    const Columns g = columns_of(layer.g, law, scale_of(layer.g, format), sample),
                  x = columns_of(layer.x, law, scale_of(layer.x, format), sample);
    for (std::size_t p = 0; p < g.squares.size(); ++p) {
      bias += g.squares[p] * x.variances[p] + g.variances[p] * x.squares[p] +
              g.variances[p] * x.variances[p] + (layer.bias ? g.variances[p] : 0);
    }
  }
  return bias;
}

bool all_factored(const std::vector<LayerOperands>& operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const LayerOperands& layer) { return layer.factored(); });
}

FactoredLaw::FactoredLaw(const std::vector<LayerOperands>& operands, const Format& format,
                         const Rounding& rounding, std::int64_t count) {
  const StochasticLaw law(format, rounding);
  const auto side = [&](const SampleOperand& operand) -> Side {
    const auto elements = static_cast<std::size_t>(count * operand.elements);
    return {operand.elements, operand.data.data(),
            law.of({operand.data.data(), elements}, scale_of(operand, format))};
  };
  for (const LayerOperands& layer : operands)
    layers_.push_back({layer.bias, side(layer.g), side(layer.x)});
}

RoundedVector FactoredLaw::Side::of(std::int64_t sample) const {
  const auto n = static_cast<std::size_t>(elements);
  return {{data + sample * elements, n}, {rounded.data() + sample * elements, n}};
}

Moments FactoredLaw::one(std::int64_t sample) const {
  Moments all;
  for (const Layer& layer : layers_) {
    Moments x = one_draw(layer.x.of(sample));
    x.mean += layer.bias ? 1 : 0;
    all = sum(all, product(one_draw(layer.g.of(sample)), x));
  }
  return all;
}

Moments FactoredLaw::two(std::int64_t i, const FactoredLaw& other, std::int64_t j) const {
  Moments all;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer &a = layers_[l], &b = other.layers_[l];
    Moments x = two_draws(a.x.of(i), b.x.of(j));
    x.mean += a.bias ? 1 : 0;
    all = sum(all, product(two_draws(a.g.of(i), b.g.of(j)), x));
  }
  return all;
}

}  // namespace numemu::experiments::tracin
