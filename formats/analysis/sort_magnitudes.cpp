#include "formats/analysis/sort_magnitudes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace numemu {
namespace {

constexpr int kDigits = 3, kDigitBits = 11;
constexpr std::size_t kFew = 1024;  // their comparisons take less time than counting digits

std::size_t digit_of(float x, int digit) {
  return std::bit_cast<std::uint32_t>(x) >> (digit * kDigitBits) & ((1U << kDigitBits) - 1);
}

}  // namespace

void sort_magnitudes(std::vector<float>& x) {
  if (x.size() < kFew) return std::sort(x.begin(), x.end());
  std::array<std::array<std::size_t, std::size_t{1} << kDigitBits>, kDigits> places{};
  for (const float v : x)
    for (int d = 0; d < kDigits; ++d) ++places[static_cast<std::size_t>(d)][digit_of(v, d)];
  std::vector<float> moved(x.size());
  for (int d = 0; d < kDigits; ++d) {
    auto& place = places[static_cast<std::size_t>(d)];
    if (place[digit_of(x[0], d)] == x.size()) continue;  // all have this digit
    std::size_t next = 0;
    for (std::size_t& p : place) {
      const std::size_t count = p;
      p = next;
      next += count;
    }
    for (const float v : x) moved[place[digit_of(v, d)]++] = v;
    x.swap(moved);
  }
}

}  // namespace numemu
