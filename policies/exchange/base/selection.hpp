// Which elements of a tensor a rule of exchange sends.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace numemu::policies {

/// How many elements of n a share is: rounded to the nearest, at least 1.
std::size_t sent_elements(double share, std::size_t n);
/// The bits of a place among n elements.
double index_bits(std::size_t n);
/// The places of the `count` elements of largest magnitude, ascending; of equal ones the lower
/// places. NaN counts as the largest, so that no residual keeps one. 1 <= count <= size.
std::vector<std::size_t> largest(std::span<const float> x, std::size_t count);
/// Sorts places by their elements, the least first; equal ones keep their order. NaN stands beyond
/// the infinities, on the side of its sign.
void sort_by_value(std::span<std::size_t> places, std::span<const float> x);
/// Writes zeros at all other places.
void keep_only(const std::vector<std::size_t>& places, std::span<float> x);

}  // namespace numemu::policies
