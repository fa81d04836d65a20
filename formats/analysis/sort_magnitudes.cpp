#include "formats/analysis/sort_magnitudes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace numemu {
namespace {

// Below kFew std::sort, whose branches are predicted; below kSome four digits of 8 bits, whose
// tables are small; else three of 11.
constexpr std::size_t kFew = 128, kSome = 1024;

template <int kBits>
float* sort_by_digits(float* x, float* other, std::size_t n) {
  constexpr int kDigits = (31 + kBits - 1) / kBits;
  const auto digit_of = [](float v, int digit) {
    return std::bit_cast<std::uint32_t>(v) >> (digit * kBits) & ((1U << kBits) - 1);
  };
  std::array<std::array<std::size_t, std::size_t{1} << kBits>, kDigits> places{};
  for (std::size_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++places[static_cast<std::size_t>(d)][digit_of(x[i], d)];
  for (int d = 0; d < kDigits; ++d) {
    auto& place = places[static_cast<std::size_t>(d)];
    if (place[digit_of(x[0], d)] == n) continue;  // all have this digit
    std::size_t next = 0;
    for (std::size_t& p : place) {
      const std::size_t count = p;
      p = next;
      next += count;
    }
    for (std::size_t i = 0; i < n; ++i) other[place[digit_of(x[i], d)]++] = x[i];
    std::swap(x, other);
  }
  return x;
}

}  // namespace

float* sort_magnitudes(float* x, float* other, std::size_t n) {
  if (n >= kSome) return sort_by_digits<11>(x, other, n);
  if (n >= kFew) return sort_by_digits<8>(x, other, n);
  std::sort(x, x + n);
  return x;
}

}  // namespace numemu
