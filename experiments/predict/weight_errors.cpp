#include "experiments/predict/weight_errors.hpp"

#include <cmath>

namespace numemu::experiments {

std::vector<float> input_sizes(const net::Tensor& inputs, const net::Tensor& weight) {
  const std::int64_t k = weight.size() / weight.dim(0), channels = inputs.shape.back();
  std::vector<float> sizes(static_cast<std::size_t>(k), 1.0f);
  if (channels == 0 || inputs.size() == 0 || weight.shape.back() % channels != 0) return sizes;
  std::vector<double> squares(static_cast<std::size_t>(channels));
  const std::int64_t lines = inputs.size() / channels;
  const float* x = inputs.data.data();
  for (std::int64_t line = 0; line < lines; ++line, x += channels) {
    for (std::int64_t c = 0; c < channels; ++c) squares[c] += double{x[c]} * x[c];
  }
  for (std::int64_t i = 0; i < k; ++i)
    sizes[i] = static_cast<float>(std::sqrt(squares[i % channels] / static_cast<double>(lines)));
  return sizes;
}

ErrorParts error_parts(const float* x, const float* r, const float* e, std::int64_t n) {
  constexpr double kParallel = 1e-6;  // squared sine below which x and r have one direction
  double xx = 0, xr = 0, rr = 0, xe = 0, re = 0, ee = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = x[i], b = r[i], c = e[i];
    xx += a * a;
    xr += a * b;
    rr += b * b;
    xe += a * c;
    re += b * c;
    ee += c * c;
  }
  ErrorParts parts;
  const double area = xx * rr - xr * xr;
  if (area > kParallel * xx * rr) {
    parts.along = (xe * rr - re * xr) / area;
    parts.common = (re * xx - xe * xr) / area;
  } else if (xx > 0) {
    parts.along = xe / xx;
  }
  parts.rest = std::max(0.0, ee - parts.along * xe - parts.common * re);
  return parts;
}

void add_error_parts(const float* x, const float* r, const ErrorParts& drawn,
                     const ErrorParts& wanted, double ratio, std::int64_t n, float* error) {
  const auto along = static_cast<float>(wanted.along - ratio * drawn.along);
  const auto common = static_cast<float>(wanted.common - ratio * drawn.common);
  const auto share = static_cast<float>(ratio);
  for (std::int64_t i = 0; i < n; ++i)
    error[i] = x[i] + (along * x[i] + common * r[i] + share * error[i]);
}

}  // namespace numemu::experiments
