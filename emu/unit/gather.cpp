// Building the gather of a plain matrix, and zero padding with dilation.
#include "emu/unit/gather.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "formats/error.hpp"

namespace numemu::unit {

Gather Gather::matrix(std::int64_t rows, std::int64_t depth, bool transposed) {
  // rows * depth <= 2^31, without a product that might overflow.
  constexpr std::int64_t kElements = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  if (rows > 0 && depth > kElements / rows) {
    throw Error("a matrix of " + std::to_string(rows) + " x " + std::to_string(depth) +
                " elements is beyond the 2^31 a gather can address; use a smaller batch");
  }
  Gather gather;
  gather.padding.outer = transposed ? depth : rows;
  gather.padding.channels = transposed ? rows : depth;
  gather.row.resize(static_cast<std::size_t>(rows));
  gather.depth.resize(static_cast<std::size_t>(depth));
  const std::int64_t row_step = transposed ? 1 : depth, depth_step = transposed ? rows : 1;
  for (std::int64_t r = 0; r < rows; ++r) gather.row[r] = static_cast<std::int32_t>(r * row_step);
  for (std::int64_t k = 0; k < depth; ++k)
    gather.depth[k] = static_cast<std::int32_t>(k * depth_step);
  return gather;
}

template <class T>
void pad(const Padding& padding, const T* source, T* padded, T zero) {
  std::fill_n(padded, padding.padded_size(), zero);
  for (std::int64_t o = 0; o < padding.outer; ++o) {
    for_each_padding_span(padding, o, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      std::copy_n(source + from, count, padded + to);
    });
  }
}

template void pad(const Padding&, const std::uint8_t*, std::uint8_t*, std::uint8_t);
template void pad(const Padding&, const std::uint16_t*, std::uint16_t*, std::uint16_t);
template void pad(const Padding&, const float*, float*, float);

}  // namespace numemu::unit
