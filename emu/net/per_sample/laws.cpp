#include "emu/net/per_sample/laws.hpp"

#include "emu/net/per_sample/gradients.hpp"

namespace numemu::net::per_sample {
namespace {

/// A sample's matrix [rows, positions] with the variances of what rounding makes of it.
struct RoundedMatrix {
  std::size_t rows = 0, positions = 0, bordered = 0;
  std::vector<float> x;
  std::vector<double> element_variances;  ///< of every bordered element
  std::vector<double> variances;          ///< the same as the matrix reads it
  /// Column by column: the squared length, the summed variances.
  std::vector<double> squares, sums;
};

RoundedMatrix matrix_of(const SampleOperand& operand, const StochasticLaw& law, double scale,
                        std::int64_t sample) {
  RoundedMatrix m;
  m.rows = static_cast<std::size_t>(operand.rows());
  m.positions = static_cast<std::size_t>(operand.positions());
  std::vector<float> scratch;
  const float* const from =
      operand.bordered(operand.data.data() + sample * operand.elements, scratch);
  m.bordered = scratch.empty() ? static_cast<std::size_t>(operand.elements) : scratch.size();
  operand.read(from, m.x);
  for (std::size_t i = 0; i < m.bordered; ++i)
    m.element_variances.push_back(law.of(double{from[i]}, scale).variance);
  operand.read(m.element_variances.data(), m.variances);
  m.squares.assign(m.positions, 0);
  m.sums.assign(m.positions, 0);
  for (std::size_t i = 0; i < m.x.size(); ++i) {
    m.squares[i % m.positions] += double{m.x[i]} * double{m.x[i]};
    m.sums[i % m.positions] += m.variances[i];
  }
  return m;
}

double added_by_one_draw(const RoundedMatrix& g, const RoundedMatrix& x, bool bias) {
  double added = 0;
  for (std::size_t p = 0; p < g.positions; ++p) {
    added += g.squares[p] * x.sums[p] + g.sums[p] * x.squares[p] + g.sums[p] * x.sums[p] +
             (bias ? g.sums[p] : 0);
  }
  return added;
}

}  // namespace

double one_draw_bias(const std::vector<LayerOperands>& operands, const Format& format,
                     const Rounding& rounding, std::int64_t sample) {
  const StochasticLaw law(format, rounding);
  double added = 0;
  for (const LayerOperands& layer : operands) {
    added +=
        added_by_one_draw(matrix_of(layer.g, law, scale_of(layer.g, format), sample),
                          matrix_of(layer.x, law, scale_of(layer.x, format), sample), layer.bias);
  }
  return added;
}

GradientLaws::GradientLaws(const std::vector<LayerOperands>& operands, const Format& format,
                           const Rounding& rounding, std::int64_t count)
    : law_(format, rounding) {
  const auto side = [&](const SampleOperand& operand, bool factored) {
    Side one{&operand, scale_of(operand, format), {}};
    const auto elements = static_cast<std::size_t>(count * operand.elements);
    if (factored) one.rounded = law_.of({operand.data.data(), elements}, one.scale);
    return one;
  };
  for (const LayerOperands& layer : operands) {
    const bool factored = layer.factored();
    layers_.push_back({factored, layer.bias, side(layer.g, factored), side(layer.x, factored)});
  }
}

RoundedVector GradientLaws::Side::of(std::int64_t sample) const {
  const auto n = static_cast<std::size_t>(operand->elements);
  const std::int64_t first = sample * operand->elements;
  return {{operand->data.data() + first, n}, {rounded.data() + first, n}};
}

SelfLaw GradientLaws::to_first_order(const Layer& layer, std::int64_t sample) const {
  const RoundedMatrix g = matrix_of(*layer.g.operand, law_, layer.g.scale, sample),
                      x = matrix_of(*layer.x.operand, law_, layer.x.scale, sample);
  const unit::Gather& gather = layer.x.operand->gather;
  const std::size_t positions = g.positions;
  // Half the derivatives of the squared length: along g by position, along x by element.
  std::vector<double> along_g(g.x.size()), along_x(x.bordered);
  double square = 0;
  for (std::size_t c = 0; c < g.rows; ++c) {
    const float* const of_g = g.x.data() + c * positions;
    const auto add = [&](double element, const float* of_x) {
      square += element * element;
      for (std::size_t p = 0; p < positions; ++p)
        along_g[c * positions + p] += element * (of_x == nullptr ? 1 : double{of_x[p]});
    };
    for (std::size_t k = 0; k < x.rows; ++k) {
      const float* const of_x = x.x.data() + k * positions;
      double element = 0;
      for (std::size_t p = 0; p < positions; ++p) element += double{of_g[p]} * double{of_x[p]};
      add(element, of_x);
      for (std::size_t p = 0; p < positions; ++p)
        along_x[static_cast<std::size_t>(gather.row[k] + gather.depth[p])] +=
            element * double{of_g[p]};
    }
    if (!layer.bias) continue;
    double element = 0;
    for (std::size_t p = 0; p < positions; ++p) element += double{of_g[p]};
    add(element, nullptr);
  }
  double variance = 0;
  for (std::size_t i = 0; i < along_g.size(); ++i)
    variance += along_g[i] * along_g[i] * g.variances[i];
  for (std::size_t i = 0; i < along_x.size(); ++i)
    variance += along_x[i] * along_x[i] * x.element_variances[i];
  return {{square + added_by_one_draw(g, x, layer.bias), 4 * variance}, {square, 2 * variance}};
}

SelfLaw GradientLaws::self(std::int64_t sample) const {
  SelfLaw all;
  for (const Layer& layer : layers_) {
    SelfLaw own;
    if (layer.factored) {
      const RoundedVector g = layer.g.of(sample), x = layer.x.of(sample);
      Moments once = one_draw(x), twice = two_draws(x, x);
      once.mean += layer.bias ? 1 : 0;
      twice.mean += layer.bias ? 1 : 0;
      own = {product(one_draw(g), once), product(two_draws(g, g), twice)};
    } else {
      own = to_first_order(layer, sample);
    }
    all = {sum(all.one, own.one), sum(all.two, own.two)};
  }
  return all;
}

Moments GradientLaws::two(std::int64_t i, const GradientLaws& other, std::int64_t j) const {
  Moments all;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer &a = layers_[l], &b = other.layers_[l];
    Moments x = two_draws(a.x.of(i), b.x.of(j));
    x.mean += a.bias ? 1 : 0;
    all = sum(all, product(two_draws(a.g.of(i), b.g.of(j)), x));
  }
  return all;
}

}  // namespace numemu::net::per_sample
