#include "policies/numerics/rotation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/net/ops/elementwise.hpp"
#include "formats/simd/butterflies.hpp"
#include "formats/simd/transpose.hpp"

namespace numemu::policies {

std::vector<float> random_signs(const RandomSource& random, std::int64_t n) {
  std::vector<float> signs(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    signs[i] = random.bits(static_cast<std::uint64_t>(i), 1) == 0 ? 1.0f : -1.0f;
  return signs;
}

namespace {

// Elements of a panel that is turned and rotated in the first-level cache.
constexpr std::int64_t kElements = 4096;
constexpr std::int64_t kLeast = 16;  // columns of a panel: a cache line

float factor_of(std::int64_t block, bool left) {
  const int levels = std::countr_zero(static_cast<std::uint64_t>(block));
  return std::ldexp(1.0f, -(left ? levels / 2 : levels - levels / 2));
}

/// Panels of one block and some columns, or of some lines where elements of a line are neighbours.
struct Panels {
  const float* x;
  float* y;
  std::int64_t length, inner, block;
  std::int64_t lines;    ///< of the columns of a block
  std::int64_t columns;  ///< of a panel, of those

  std::int64_t beside() const { return (lines + columns - 1) / columns; }

  void rotate(std::int64_t outer, std::int64_t b, std::int64_t panel, const float* factors) const {
    const std::int64_t c0 = panel * columns, c = std::min(columns, lines - c0);
    thread_local std::vector<float> turned;
    turned.resize(static_cast<std::size_t>(std::max(kElements, block * columns)));
    float* const buffer = turned.data();
    const float* const by = factors + b * block;
    if (inner == 1) {
      const std::int64_t first = c0 * length + b * block;
      simd::transpose_words(x + first, c, block, length, buffer, columns);
      simd::butterflies(buffer, columns, block, columns, by, buffer, columns, buffer);
      simd::transpose_words(buffer, block, c, columns, y + first, length);
      return;
    }
    const std::int64_t first = (outer * length + b * block) * inner + c0;
    if (c == columns) {
      simd::butterflies(x + first, inner, block, columns, by, y + first, inner, buffer);
      return;
    }
    for (std::int64_t r = 0; r < block; ++r)
      std::copy_n(x + first + r * inner, c, buffer + r * columns);
    simd::butterflies(buffer, columns, block, columns, by, buffer, columns, buffer);
    for (std::int64_t r = 0; r < block; ++r)
      std::copy_n(buffer + r * columns, c, y + first + r * inner);
  }
};

}  // namespace

void rotate(const float* x, float* y, std::int64_t outer, std::int64_t inner,
            const std::vector<float>& signs, std::int64_t block, bool left) {
  const auto length = static_cast<std::int64_t>(signs.size());
  const std::int64_t blocks = length / block;
  std::vector<float> factors = signs;
  for (float& f : factors) f *= factor_of(block, left);
  const std::int64_t whole = blocks * block, beyond = (length - whole) * inner;
  for (std::int64_t o = 0; o < outer && x != y && beyond > 0; ++o)
    std::copy_n(x + (o * length + whole) * inner, beyond, y + (o * length + whole) * inner);
  Panels panels{x, y, length, inner, block, inner, std::max(kLeast, kElements / block)};
  if (inner == 1) {
    panels.lines = outer;
    outer = 1;
  }
  if (panels.lines == 0 || outer == 0) return;
  const std::int64_t least = (panels.lines + kLeast - 1) / kLeast * kLeast;
  panels.columns = std::min({panels.columns / kLeast * kLeast, least, 8 * kLeast});
  const std::int64_t beside = panels.beside();
  net::for_each_row(outer * blocks * beside, block * panels.columns, [&](std::int64_t task) {
    const std::int64_t b = task / beside;
    panels.rotate(b / blocks, b % blocks, task % beside, factors.data());
  });
}

void rotate_reference(float* x, std::int64_t outer, std::int64_t inner,
                      const std::vector<float>& signs, std::int64_t block, bool left) {
  const float scale = factor_of(block, left);
  const auto length = static_cast<std::int64_t>(signs.size());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t first = 0; first + block <= length; first += block) {
      float* const y = x + (o * length + first) * inner;
      for (std::int64_t c = 0; c < block * inner; ++c) y[c] *= signs[first + c / inner] * scale;
      for (std::int64_t half = inner; half < block * inner; half *= 2) {
        for (std::int64_t c = 0; c < block * inner; ++c) {
          if ((c / half) % 2 != 0) continue;
          const float low = y[c], high = y[c + half];
          y[c] = net::neutral(low + high);
          y[c + half] = net::neutral(low - high);
        }
      }
    }
  }
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
