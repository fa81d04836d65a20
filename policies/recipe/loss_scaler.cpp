#include "policies/recipe/loss_scaler.hpp"

#include <algorithm>
#include <bit>

#include "policies/state_bytes.hpp"

namespace numemu::policies {
namespace {

bool finite(const net::Tensor& x) {
  std::uint32_t largest = 0;
#pragma omp parallel for simd reduction(max : largest) if (x.size() > (std::int64_t{1} << 16))
  for (std::int64_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x.data[i]) & 0x7fffffffu);
  return largest < 0x7f800000u;
}

}  // namespace

float LossScaler::value() const {
  return rule_.kind == LossScale::Kind::none ? 1.0f : static_cast<float>(value_);
}

bool LossScaler::accept(const std::vector<net::Tensor>& gradients) {
  if (rule_.kind != LossScale::Kind::dynamic) return true;
  if (!std::all_of(gradients.begin(), gradients.end(), finite)) {
    value_ = std::max(kSmallest, value_ / 2);
    good_ = 0;
    ++skipped_;
    return false;
  }
  if (++good_ == rule_.growth_interval) {
    value_ = std::min(kLargest, value_ * 2);
    good_ = 0;
  }
  return true;
}

std::string LossScaler::state() const {
  return to_bytes(
      {bits_of(value_), static_cast<std::uint64_t>(good_), static_cast<std::uint64_t>(skipped_)});
}

void LossScaler::load(const std::string& name, const std::string& state) {
  const std::vector<std::uint64_t> numbers = from_bytes(name, state);
  if (numbers.size() != 3)
    throw Error("state " + name + ": expected 3 numbers, found " + std::to_string(numbers.size()));
  value_ = double_of(numbers[0]);
  good_ = static_cast<std::int64_t>(numbers[1]);
  skipped_ = static_cast<std::int64_t>(numbers[2]);
}

}  // namespace numemu::policies
