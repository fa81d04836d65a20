#include "policies/calibrate/least_squares.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "emu/net/product.hpp"
#include "formats/error.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "policies/calibrate/least_squares.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace numemu::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Four vectors of sums stay in registers while the rows pass.
std::int64_t add_scaled_panels(const float* x, std::int64_t width, const std::int32_t* places,
                               const float* factors, std::int64_t count, std::int64_t n,
                               double* sums) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto step = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t j = 0;
  for (; j + 4 * step <= n; j += 4 * step) {
    auto s0 = hn::LoadU(wide, sums + j), s1 = hn::LoadU(wide, sums + j + step),
         s2 = hn::LoadU(wide, sums + j + 2 * step), s3 = hn::LoadU(wide, sums + j + 3 * step);
    for (std::int64_t r = 0; r < count; ++r) {
      const float* const row = x + places[r] * width + j;
      const auto f = hn::Set(wide, double{factors[r]});
      s0 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row)), s0);
      s1 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + step)), s1);
      s2 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + 2 * step)), s2);
      s3 = hn::MulAdd(f, hn::PromoteTo(wide, hn::LoadU(narrow, row + 3 * step)), s3);
    }
    hn::StoreU(s0, wide, sums + j);
    hn::StoreU(s1, wide, sums + j + step);
    hn::StoreU(s2, wide, sums + j + 2 * step);
    hn::StoreU(s3, wide, sums + j + 3 * step);
  }
  for (; j + step <= n; j += step) {
    auto s = hn::LoadU(wide, sums + j);
    for (std::int64_t r = 0; r < count; ++r) {
      s = hn::MulAdd(hn::Set(wide, double{factors[r]}),
                     hn::PromoteTo(wide, hn::LoadU(narrow, x + places[r] * width + j)), s);
    }
    hn::StoreU(s, wide, sums + j);
  }
  return j;
}

}  // namespace HWY_NAMESPACE
}  // namespace numemu::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numemu::simd {
namespace {

HWY_EXPORT(add_scaled_panels);

std::int64_t whole_panels(const float* x, std::int64_t width, const std::int32_t* places,
                          const float* factors, std::int64_t count, std::int64_t n, double* sums) {
  return HWY_DYNAMIC_DISPATCH(add_scaled_panels)(x, width, places, factors, count, n, sums);
}

}  // namespace
}  // namespace numemu::simd

namespace numemu::policies {
namespace {

/// sums[j] += factors[r] x[places[r]][j] for j in [0, n), r from 0 to count - 1 in order, x
/// row-major with `width` numbers in a row. Products of two float32 are exact in float64, so that
/// fused and separate additions give the same bits.
void add_scaled_rows(const float* x, std::int64_t width, const std::int32_t* places,
                     const float* factors, std::int64_t count, std::int64_t n, double* sums) {
  for (std::int64_t j = simd::whole_panels(x, width, places, factors, count, n, sums); j < n; ++j) {
    for (std::int64_t r = 0; r < count; ++r)
      sums[j] += double{factors[r]} * double{x[places[r] * width + j]};
  }
}

constexpr std::int64_t kFewestParallelRows = 256;  // below, starting threads costs more

}  // namespace

Cholesky::Cholesky(std::vector<double> a, std::int64_t n) : l_(std::move(a)), n_(n) {
  std::vector<double> column(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; ++k) {
    const double pivot = l_[k * n + k];
    if (!(pivot > 0)) {
      throw Error("expected a positive definite matrix: pivot " + std::to_string(k) + " of " +
                  std::to_string(n) + " is not positive");
    }
    const double root = std::sqrt(pivot);
    l_[k * n + k] = root;
    for (std::int64_t i = k + 1; i < n; ++i) column[i] = l_[i * n + k] /= root;
      // Each element takes the products of one column after another: no sum is shared by threads.
#pragma omp parallel for schedule(static, 8) if (n - k > kFewestParallelRows)
    for (std::int64_t i = k + 1; i < n; ++i) {
      double* row = l_.data() + i * n;
      const double factor = column[i];
      for (std::int64_t j = k + 1; j <= i; ++j) row[j] -= factor * column[j];
    }
  }
}

void Cholesky::solve(double* b) const {
  for (std::int64_t i = 0; i < n_; ++i) {
    double sum = b[i];
    for (std::int64_t j = 0; j < i; ++j) sum -= l_[i * n_ + j] * b[j];
    b[i] = sum / l_[i * n_ + i];
  }
  for (std::int64_t i = n_ - 1; i >= 0; --i) {
    b[i] /= l_[i * n_ + i];
    for (std::int64_t j = 0; j < i; ++j) b[j] -= l_[i * n_ + j] * b[i];
  }
}

namespace {

constexpr std::int64_t kRowsInCache = 128;
constexpr std::int64_t kFewestParallelProducts = 1 << 19;  // below, starting threads costs more
constexpr std::int64_t kGatheredRows = 8192;  // at a time: the whole operand may be large

void require_finite(const float* x, std::int64_t n, const char* what) {
  if (!std::all_of(x, x + n, [](float v) { return std::isfinite(v); }))
    throw Error(std::string("least squares: expected finite ") + what);
}

/// Inputs that a mask keeps for an output; all without a mask.
std::vector<std::int64_t> kept_inputs(const std::uint8_t* mask, std::int64_t in) {
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < in; ++i)
    if (mask == nullptr || mask[i] != 0) kept.push_back(i);
  return kept;
}

}  // namespace

LeastSquares::LeastSquares(std::int64_t in, std::int64_t out)
    : in_(in), out_(out), xx_(in * in), yx_(out * in), yy_(out) {}

void LeastSquares::add(const float* x, const float* y, std::int64_t rows) {
  require_finite(x, rows * in_, "inputs");
  require_finite(y, rows * out_, "outputs");
  for (std::int64_t first = 0; first < rows; first += kRowsInCache) {
    const std::int64_t count = std::min(kRowsInCache, rows - first);
    add_rows(x + first * in_, y + first * out_, count);
  }
  rows_ += rows;
}

// Each sum takes its rows in order; half of the numbers behind a ReLU are zeros, which add nothing.
void LeastSquares::add_rows(const float* x, const float* y, std::int64_t rows) {
  const bool large = in_ * (in_ + out_) * rows > kFewestParallelProducts;
  const auto add = [&](const float* factors, std::int64_t stride, std::int64_t n, double* sums) {
    std::int32_t places[kRowsInCache];
    float kept[kRowsInCache];
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float factor = factors[r * stride];
      if (factor == 0) continue;
      places[count] = static_cast<std::int32_t>(r);
      kept[count++] = factor;
    }
    add_scaled_rows(x, in_, places, kept, count, n, sums);
  };
#pragma omp parallel for schedule(dynamic, 8) if (large)
  for (std::int64_t i = 0; i < in_; ++i) add(x + i, in_, i + 1, xx_.data() + i * in_);
#pragma omp parallel for schedule(static) if (large)
  for (std::int64_t o = 0; o < out_; ++o) {
    for (std::int64_t r = 0; r < rows; ++r)
      yy_[o] += double{y[r * out_ + o]} * double{y[r * out_ + o]};
    add(y + o, out_, in_, yx_.data() + o * in_);
  }
}

void LeastSquares::add(const net::Product& product, std::int64_t matrix, const float* y) {
  if (product.k != in_ || product.n != out_) {
    throw Error("least squares: expected a product of depth " + std::to_string(in_) +
                " and width " + std::to_string(out_) + ", got " + std::to_string(product.k) +
                " and " + std::to_string(product.n));
  }
  for (std::int64_t first = 0; first < product.m; first += kGatheredRows) {
    const std::int64_t count = std::min(kGatheredRows, product.m - first);
    add(operand_rows(product.a, matrix, first, count).data(), y + first * out_, count);
  }
}

std::vector<float> LeastSquares::solve(const LeastSquaresOptions& options) const {
  double trace = 0;
  for (std::int64_t i = 0; i < in_; ++i) trace += xx_[i * in_ + i];
  // Inputs that are all zero leave any weights optimal; the prior is then the answer.
  const double ridge = trace > 0 ? options.ridge * trace / static_cast<double>(in_) : 1;
  std::vector<float> weights(out_ * in_);
  std::unique_ptr<Cholesky> factor;
  std::vector<std::int64_t> kept, factored;
  for (std::int64_t o = 0; o < out_; ++o) {
    kept = kept_inputs(options.mask ? options.mask + o * in_ : nullptr, in_);
    const auto n = static_cast<std::int64_t>(kept.size());
    if (factor == nullptr || kept != factored) {
      std::vector<double> a(n * n);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) a[i * n + j] = xx_[kept[i] * in_ + kept[j]];
        a[i * n + i] += ridge;
      }
      factor = std::make_unique<Cholesky>(std::move(a), n);
      factored = kept;
    }
    std::vector<double> b(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = o * in_ + kept[i];
      b[i] = yx_[at] + (options.prior ? ridge * static_cast<double>(options.prior[at]) : 0.0);
    }
    factor->solve(b.data());
    for (std::int64_t i = 0; i < n; ++i) weights[o * in_ + kept[i]] = static_cast<float>(b[i]);
  }
  return weights;
}

double LeastSquares::squared_error(const float* weights) const {
  double error = 0;
  for (std::int64_t o = 0; o < out_; ++o) {
    const float* w = weights + o * in_;
    double own = yy_[o];
    for (std::int64_t i = 0; i < in_; ++i) {
      double twice = -2 * yx_[o * in_ + i] + xx_[i * in_ + i] * static_cast<double>(w[i]);
      for (std::int64_t j = 0; j < i; ++j)
        twice += 2 * xx_[i * in_ + j] * static_cast<double>(w[j]);
      own += static_cast<double>(w[i]) * twice;
    }
    error += own;
  }
  return error;
}

void collect(const net::Product& given, bool outputs, std::vector<LeastSquares>& matrices) {
  net::Product p = given;
  if (!outputs) p.n = 0;
  const std::int64_t count = p.b.stack.count();
  if (matrices.empty()) matrices.assign(static_cast<std::size_t>(count), LeastSquares(p.k, p.n));
  std::vector<float> y(static_cast<std::size_t>(p.m * p.n));
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    for (std::int64_t r = 0; r < p.m; ++r)
      std::copy_n(p.d + p.d_stack.row(i, r, p.m) * p.n, p.n, y.data() + r * p.n);
    matrices[static_cast<std::size_t>(count == 1 ? 0 : i)].add(p, i, y.data());
  }
}

std::vector<float> operand_rows(const net::ProductSide& side, std::int64_t matrix,
                                std::int64_t first, std::int64_t count) {
  net::StackReader reader(side);
  const auto* source = reinterpret_cast<const float*>(reader.at(matrix));
  const unit::Gather& gather = *side.gather;
  std::vector<float> padded;
  if (!gather.padding.identity()) {
    padded.resize(gather.padding.padded_size());
    unit::pad(gather.padding, source, padded.data(), 0.0f);
    source = padded.data();
  }
  std::vector<float> out;
  out.reserve(count * gather.depth.size());
  for (std::int64_t r = first; r < first + count; ++r)
    for (const std::int32_t depth : gather.depth) out.push_back(source[gather.row[r] + depth]);
  return out;
}

}  // namespace numemu::policies
#endif
