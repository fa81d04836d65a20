#include "policies/rotation.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"

namespace numemu::policies {

std::vector<float> random_signs(const RandomSource& random, std::int64_t n) {
  std::vector<float> signs(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    signs[i] = random.bits(static_cast<std::uint64_t>(i), 1) == 0 ? 1.0f : -1.0f;
  return signs;
}

void rotate(float* x, std::int64_t outer, std::int64_t inner, const std::vector<float>& signs,
            std::int64_t block, bool left) {
  const int levels = std::countr_zero(static_cast<std::uint64_t>(block));
  const float scale = std::ldexp(1.0f, -(left ? levels / 2 : levels - levels / 2));
  const auto length = static_cast<std::int64_t>(signs.size());
  const std::int64_t blocks = length / block;
  net::for_each_row(outer * blocks, block * inner * levels, [&](std::int64_t task) {
    const std::int64_t first_position = task % blocks * block;
    float* const y = x + (task / blocks * length + first_position) * inner;
    for (std::int64_t c = 0; c < block; ++c) {
      const float factor = signs[first_position + c] * scale;
      for (std::int64_t i = c * inner; i < (c + 1) * inner; ++i) y[i] *= factor;
    }
    for (std::int64_t half = inner; half < block * inner; half *= 2) {
      for (std::int64_t first = 0; first < block * inner; first += 2 * half) {
        float* const low = y + first;
        float* const high = low + half;
#pragma omp simd
        for (std::int64_t c = 0; c < half; ++c) {
          const float sum = low[c] + high[c], difference = low[c] - high[c];
          low[c] = net::neutral(sum);
          high[c] = net::neutral(difference);
        }
      }
    }
  });
}

std::string not_rotatable(const char* role, const std::optional<RolePolicy>& policy,
                          const std::optional<MaskPolicy>& mask) {
  if (mask) {
    return fmt::format(
        "hadamard and roles.{}.mask contradict each other: backward would read the mask of the "
        "rotated {} on one that is not rotated",
        role, role);
  }
  const bool shifted = policy && policy->block != nullptr && policy->block->affine != Affine::sym;
  if (policy && !policy->format->is_signed && !shifted) {
    return fmt::format(
        "hadamard and roles.{}.format {} contradict each other: rotated numbers have both signs",
        role, policy->format->name);
  }
  return "";
}

}  // namespace numemu::policies
