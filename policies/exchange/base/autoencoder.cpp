#include "policies/exchange/base/autoencoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/portable/math.hpp"
#include "formats/random.hpp"

namespace numemu::policies {
namespace {

// A few dozen steps bring windows of correlation 0.9 within 1 % of the error of principal
// components (autoencoder_test.cpp).
constexpr double kRate = 0.03, kBeta1 = 0.9, kBeta2 = 0.99, kEpsilon = 1e-8;

}  // namespace

Autoencoder::Autoencoder(std::int64_t window, std::int64_t code, std::uint64_t seed)
    : window_(window), code_(code), state_(3 * weights() + 1) {
  // E with rows of mean square length 1, and D = E^T.
  const RandomSource random{seed, Stream::init, tensor_word("exchange/learned/encoder")};
  const double length = std::sqrt(3 / static_cast<double>(window));
  for (std::int64_t i = 0; i < window * code; ++i) {
    const double u = 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1;
    const std::int64_t j = i / window, k = i % window;
    state_[static_cast<std::size_t>(i)] = static_cast<float>(length * u);
    state_[static_cast<std::size_t>(window * code + k * code + j)] = static_cast<float>(length * u);
  }
}

void Autoencoder::train(std::span<const float> x) {
  const FloatGuard guard;
  double power = 0;
  for (const float value : x) power += double{value} * double{value};
  if (!(power > 0) || !std::isfinite(power)) return;
  const double elements = static_cast<double>(windows(x.size()) * window_);
  const double scale = 1 / std::sqrt(power / elements);

  const float* const encoder = state_.data();
  const float* const decoder = encoder + window_ * code_;
  std::vector<double> gradient(weights(), 0.0), in(static_cast<std::size_t>(window_)),
      error(in.size()), z(static_cast<std::size_t>(code_));
  double* const of_encoder = gradient.data();
  double* const of_decoder = of_encoder + window_ * code_;
  for (std::int64_t w = 0; w < windows(x.size()); ++w) {
    for (std::int64_t k = 0; k < window_; ++k) {
      const auto i = static_cast<std::size_t>(w * window_ + k);
      in[k] = i < x.size() ? scale * x[i] : 0;
    }
    for (std::int64_t j = 0; j < code_; ++j) {
      z[j] = 0;
      for (std::int64_t k = 0; k < window_; ++k) z[j] += encoder[j * window_ + k] * in[k];
    }
    for (std::int64_t k = 0; k < window_; ++k) {
      error[k] = -in[k];
      for (std::int64_t j = 0; j < code_; ++j) error[k] += decoder[k * code_ + j] * z[j];
    }
    for (std::int64_t j = 0; j < code_; ++j) {
      double back = 0;
      for (std::int64_t k = 0; k < window_; ++k) {
        back += decoder[k * code_ + j] * error[k];
        of_decoder[k * code_ + j] += 2 / elements * error[k] * z[j];
      }
      for (std::int64_t k = 0; k < window_; ++k)
        of_encoder[j * window_ + k] += 2 / elements * back * in[k];
    }
  }

  const double step = double{state_.back()} + 1;
  state_.back() = static_cast<float>(step);
  const double unbias1 = 1 - portable::pow(kBeta1, step), unbias2 = 1 - portable::pow(kBeta2, step);
  float* const first = state_.data() + weights();
  float* const second = first + weights();
  for (std::size_t i = 0; i < weights(); ++i) {
    first[i] = static_cast<float>(kBeta1 * first[i] + (1 - kBeta1) * gradient[i]);
    second[i] = static_cast<float>(kBeta2 * second[i] + (1 - kBeta2) * gradient[i] * gradient[i]);
    const double direction = (first[i] / unbias1) / (std::sqrt(second[i] / unbias2) + kEpsilon);
    state_[i] = static_cast<float>(state_[i] - kRate * direction);
  }
}

void Autoencoder::reconstruct(std::span<float> x) const {
  const float* const encoder = state_.data();
  const float* const decoder = encoder + window_ * code_;
  net::for_each_row(windows(x.size()), window_ * code_, [&](std::int64_t w) {
    const std::span<float> own = x.subspan(static_cast<std::size_t>(w * window_));
    const std::int64_t n = std::min<std::int64_t>(window_, std::ssize(own));
    std::vector<double> out(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t j = 0; j < code_; ++j) {
      double z = 0;
      for (std::int64_t k = 0; k < n; ++k) z += double{encoder[j * window_ + k]} * own[k];
      const auto sent = static_cast<float>(z);
      for (std::int64_t k = 0; k < n; ++k) out[k] += double{decoder[k * code_ + j]} * sent;
    }
    const auto finite = [](double value) { return std::isfinite(static_cast<float>(value)); };
    if (!std::ranges::all_of(out, finite)) return;
    for (std::int64_t k = 0; k < n; ++k) own[k] = static_cast<float>(out[k]);
  });
}

void Autoencoder::set_state(std::span<const float> state) {
  if (state.size() != state_.size()) {
    throw Error(fmt::format("state of the autoencoder: expected {} elements, found {}",
                            state_.size(), state.size()));
  }
  std::ranges::copy(state, state_.begin());
}

}  // namespace numemu::policies
