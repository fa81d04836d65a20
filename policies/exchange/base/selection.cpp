#include "policies/exchange/base/selection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

namespace numemu::policies {

std::size_t sent_elements(double share, std::size_t n) {
  return static_cast<std::size_t>(std::max(1.0, std::round(share * static_cast<double>(n))));
}

double index_bits(std::size_t n) { return n < 2 ? 0 : static_cast<double>(std::bit_width(n - 1)); }

std::vector<std::size_t> largest(std::span<const float> x, std::size_t count) {
  std::vector<std::size_t> places(count);
  if (count == x.size()) {
    std::iota(places.begin(), places.end(), std::size_t{0});
    return places;
  }
  const auto magnitude = [](float value) {
    return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
  };
  std::vector<std::uint32_t> magnitudes(x.size());
  std::ranges::transform(x, magnitudes.begin(), magnitude);
  const auto cut = magnitudes.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(magnitudes, cut - 1, std::ranges::greater());
  const std::uint32_t least = cut[-1];
  auto equal =
      std::count(magnitudes.begin(), cut, least);  // of those at `least`, how many are sent
  std::size_t found = 0;
  for (std::size_t i = 0; found < count; ++i) {
    const std::uint32_t of_this = magnitude(x[i]);
    if (of_this > least || (of_this == least && equal-- > 0)) places[found++] = i;
  }
  return places;
}

void sort_by_value(std::span<std::size_t> places, std::span<const float> x) {
  // Magnitude and sign as an integer: an order of all bits, in which both zeros are 0.
  std::ranges::stable_sort(places, {}, [&](std::size_t place) {
    const auto magnitude =
        static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x[place]) & 0x7fffffffu);
    return std::signbit(x[place]) ? -magnitude : magnitude;
  });
}

void keep_only(const std::vector<std::size_t>& places, std::span<float> x) {
  const std::vector<float> all(x.begin(), x.end());
  std::ranges::fill(x, 0.0f);
  for (const std::size_t place : places) x[place] = all[place];
}

}  // namespace numemu::policies
