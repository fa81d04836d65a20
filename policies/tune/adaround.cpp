// Step adaround: each weight rounded up or down so that the layer's outputs change least.
#include "policies/tune/adaround.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "emu/net/math.hpp"
#include "emu/net/ops/elementwise.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/unit/chain/chain.hpp"
#include "policies/tune/base/gptq.hpp"
#include "policies/tune/base/weight_rounding.hpp"

namespace numemu::policies {
namespace {

constexpr double kGamma = -0.1, kZeta = 1.1;  // the stretched sigmoid runs from gamma to zeta
// h is 0 and 1 beyond, where its slope is 0; inside this margin the inverse stays finite.
constexpr double kMargin = 1e-6;

std::vector<std::int32_t> steps(std::int64_t n, std::int64_t step) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) table[i] = static_cast<std::int32_t>(i * step);
  return table;
}

/// D H of the rows of one share, by chains of float32: it steers Adam and decides no result.
class HessianProduct {
 public:
  HessianProduct(const std::vector<double>& hessian, std::int64_t rows, std::int64_t n)
      : h_(static_cast<std::size_t>(n * n)), row_(steps(std::max(rows, n), n)), one_(steps(n, 1)) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        h_[i * n + j] = static_cast<float>(hessian[std::max(i, j) * n + std::min(i, j)]);
    chain_.m = rows;
    chain_.n = chain_.k = n;
    chain_.b = {h_.data(), row_.data(), one_.data()};
  }
  void operator()(const float* d, float* product) {
    chain_.a = {d, row_.data(), one_.data()};
    chain_.d = product;
    unit::run_chain(chain_);
  }

 private:
  std::vector<float> h_;
  std::vector<std::int32_t> row_, one_;
  unit::Chain<float, float> chain_;
};

double beta_at(const AdaRoundOptions& options, double progress) {
  const double share = (progress - options.warm_up) / (1 - options.warm_up);
  return options.last_beta +
         0.5 * (options.first_beta - options.last_beta) * (1 + net::cos_pi(share));
}

}  // namespace

double rectified_sigmoid(double v) {
  const double s = net::sigmoid(static_cast<float>(v));
  return std::clamp(s * (kZeta - kGamma) + kGamma, 0.0, 1.0);
}

double rectified_sigmoid_slope(double v) {
  const double s = net::sigmoid(static_cast<float>(v)), h = s * (kZeta - kGamma) + kGamma;
  return h > 0 && h < 1 ? s * (1 - s) * (kZeta - kGamma) : 0;
}

double rectified_sigmoid_inverse(double h) {
  const double s = (std::clamp(h, kMargin, 1 - kMargin) - kGamma) / (kZeta - kGamma);
  return -static_cast<double>(net::log(static_cast<float>(1 / s - 1)));
}

double rounding_penalty_slope(double h, double beta) {
  const double off = 2 * h - 1;
  const double slope = 2 * beta *
                       static_cast<double>(net::pow(static_cast<float>(std::abs(off)),
                                                    static_cast<float>(beta - 1)));
  return off > 0 ? -slope : off < 0 ? slope : 0;
}

net::Tensor adaround(const RolePolicy& policy, const net::Tensor& weight,
                     const std::vector<std::vector<double>>& hessians, std::int64_t samples,
                     const AdaRoundOptions& options) {
  const WeightGrid grid(policy, weight);
  const net::Tensor nearest = grid.nearest(weight);
  const std::vector<double> least = output_errors(weight, nearest, hessians);
  const std::int64_t size = weight.size(), n = size / weight.dim(0),
                     each = weight.dim(0) / static_cast<std::int64_t>(hessians.size());
  net::Tensor low(weight.shape), high(weight.shape), d(weight.shape), dh(weight.shape),
      gradient(weight.shape);
  net::Parameter v{"v", net::Tensor(weight.shape)};
  constexpr std::int64_t kWork = 200;  // conversions and logarithms, of elements that are added
  net::for_each_row(size, kWork, [&](std::int64_t i) {
    const float x = weight.data[i];
    low.data[i] = grid.below(i, x);
    high.data[i] = grid.above(i, x);
    const double gap = double{high.data[i]} - double{low.data[i]};
    v.value.data[i] = static_cast<float>(
        rectified_sigmoid_inverse(gap > 0 ? (double{x} - double{low.data[i]}) / gap : 0));
  });
  std::vector<HessianProduct> products;
  for (const std::vector<double>& hessian : hessians) products.emplace_back(hessian, each, n);

  net::TrainOptions adam;
  adam.optimizer = "adam-l2";
  adam.weight_decay = 0;
  const net::Parameter* const parameters[] = {&v};
  const std::unique_ptr<net::Optimizer> optimizer = net::make_optimizer(adam, parameters);
  std::vector<float> delta;
  const double factor = 2 / static_cast<double>(std::max<std::int64_t>(1, samples));
  // The published lambda is a number of the outputs' unit; here it follows their scale.
  const double lambda = options.regulariser * factor / 2 / static_cast<double>(size) *
                        std::accumulate(least.begin(), least.end(), 0.0);
  for (std::int64_t step = 0; step < options.iterations; ++step) {
    const double progress = static_cast<double>(step) / static_cast<double>(options.iterations);
    const bool warm = progress < options.warm_up;
    const double beta = warm ? 0 : beta_at(options, progress);
    net::for_each_row(size, kWork, [&](std::int64_t i) {
      const double h = rectified_sigmoid(v.value.data[i]);
      d.data[i] = static_cast<float>(double{low.data[i]} - double{weight.data[i]} +
                                     h * (double{high.data[i]} - double{low.data[i]}));
    });
    for (std::size_t share = 0; share < products.size(); ++share) {
      const std::int64_t first = static_cast<std::int64_t>(share) * each * n;
      products[share](d.data.data() + first, dh.data.data() + first);
    }
    net::for_each_row(size, kWork, [&](std::int64_t i) {
      const double x = v.value.data[i], gap = double{high.data[i]} - double{low.data[i]};
      double along_h = factor * double{dh.data[i]} * gap;
      if (!warm && gap > 0) along_h += lambda * rounding_penalty_slope(rectified_sigmoid(x), beta);
      gradient.data[i] = static_cast<float>(along_h * rectified_sigmoid_slope(x));
    });
    optimizer->begin_step(options.rate);
    optimizer->step(0, v, gradient, delta);
    for (std::int64_t i = 0; i < size; ++i) v.value.data[i] += delta[i];
  }
  net::Tensor out(weight.shape);
  for (std::int64_t i = 0; i < size; ++i)
    out.data[i] = rectified_sigmoid(v.value.data[i]) >= 0.5 ? high.data[i] : low.data[i];
  const std::vector<double> errors = output_errors(weight, out, hessians);
  for (std::int64_t row = 0; row < weight.dim(0); ++row)
    if (!(errors[row] < least[row]))
      std::copy_n(nearest.data.begin() + row * n, n, out.data.begin() + row * n);
  return out;
}

namespace {

struct AdaroundStepOptions final : RoundingOptions {
  AdaRoundOptions adaround;
  std::vector<Option> list() override {
    return with_inputs(
        {{"iterations", "steps of Adam for each layer", &adaround.iterations, 0, 1e6},
         {"rate", "rate of Adam", &adaround.rate, 0, 10},
         {"regulariser",
          "weight of the term that pulls to one of the two levels, in units of the error of "
          "rounding to nearest per weight",
          &adaround.regulariser, 0, 1e6},
         {"first_beta", "exponent of that term at first", &adaround.first_beta, 1, 100},
         {"last_beta", "and at last", &adaround.last_beta, 1, 100},
         {"warm_up", "share of the steps without that term", &adaround.warm_up, 0, 0.9}});
  }
};

class AdaRound final : public RoundingStep {
 public:
  explicit AdaRound(const AdaroundStepOptions& options)
      : RoundingStep("adaround", options), options_(options) {}

 private:
  net::Tensor round(const RolePolicy& role, const net::Tensor& weight,
                    const LayerHessians& hessians) const override {
    return adaround(role, weight, hessians.matrices, hessians.rows, options_.adaround);
  }
  const AdaroundStepOptions& options_;
};

}  // namespace

extern const TuneStepKind tune_adaround{
    .name = "adaround",
    .summary = "each weight rounded up or down, whichever changes the layer's outputs least",
    .source = "Nagel et al., ICML 2020 (arXiv 2004.10568)",
    .options = make_options<AdaroundStepOptions>,
    .make = make_step<AdaRound, AdaroundStepOptions>};

}  // namespace numemu::policies
