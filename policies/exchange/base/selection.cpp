#include "policies/exchange/base/selection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace numemu::policies {

std::size_t sent_elements(double share, std::size_t n) {
  return static_cast<std::size_t>(std::max(1.0, std::round(share * static_cast<double>(n))));
}

double index_bits(std::size_t n) { return n < 2 ? 0 : static_cast<double>(std::bit_width(n - 1)); }

std::vector<std::size_t> largest(std::span<const float> x, std::size_t count) {
  std::vector<std::size_t> places(x.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (count == x.size()) return places;
  const auto magnitude = [&](std::size_t i) {
    return std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu;
  };
  const auto cut = places.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(places.begin(), cut, places.end(), [&](std::size_t a, std::size_t b) {
    return magnitude(a) != magnitude(b) ? magnitude(a) > magnitude(b) : a < b;
  });
  places.erase(cut, places.end());
  return places;
}

void keep_only(const std::vector<std::size_t>& places, std::span<float> x) {
  const std::vector<float> all(x.begin(), x.end());
  std::ranges::fill(x, 0.0f);
  for (const std::size_t place : places) x[place] = all[place];
}

}  // namespace numemu::policies
