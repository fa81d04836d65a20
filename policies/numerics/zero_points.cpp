#include "policies/numerics/zero_points.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "policies/numerics/quantized_tensor.hpp"

namespace numemu::policies {

std::int64_t ZeroPoints::excess(const net::Product& p, std::int64_t matrix, std::int64_t i,
                                std::int64_t j) const {
  const auto sum = [&](const std::vector<std::int64_t>& sums, std::int64_t rows, std::int64_t row) {
    const bool shared = static_cast<std::int64_t>(sums.size()) == rows;
    return sums[static_cast<std::size_t>((shared ? 0 : matrix * rows) + row)];
  };
  std::int64_t excess = -depth * a * b;
  if (a != 0) excess += a * sum(b_sums, p.n, j);
  if (b != 0) excess += b * sum(a_sums, p.m, i);
  return excess;
}

void pad_with(std::uint8_t code, const net::ProductSide& side, const std::uint8_t* codes,
              PaddedSide& padded) {
  // All matrices at once: those side by side are further channels, the outer ones further images.
  unit::Padding whole = side.gather->padding;
  whole.channels *= side.stack.inner;
  whole.outer *= side.stack.outer;
  padded.codes.assign(static_cast<std::size_t>(whole.padded_size()), code);
  unit::pad(whole, codes, padded.codes.data(), code);
  padded.gather = *side.gather;
  unit::Padding& own = padded.gather.padding;
  own = {.outer = own.outer,
         .height = own.padded_height,
         .width = own.padded_width,
         .channels = own.channels,
         .padded_height = own.padded_height,
         .padded_width = own.padded_width};
  padded.sizes.data.resize(padded.codes.size());
  padded.side = side;
  padded.side.source = &padded.sizes;
  padded.side.gather = &padded.gather;
}

std::vector<std::int64_t> code_sums(const net::ProductSide& side, const net::SourceCodes& source,
                                    std::int64_t depth) {
  const float* const values = value_table(*source.format);
  const unit::Gather& gather = *side.gather;
  const auto rows = static_cast<std::int64_t>(gather.row.size());
  net::StackReader reader(side, source);
  std::vector<std::uint8_t> padded;
  std::vector<std::int64_t> sums(static_cast<std::size_t>(side.stack.count() * rows));
  for (std::int64_t m = 0; m < side.stack.count(); ++m) {
    const auto* codes = reinterpret_cast<const std::uint8_t*>(reader.at(m));
    if (!gather.padding.identity()) {
      padded.resize(static_cast<std::size_t>(gather.padding.padded_size()));
      unit::pad(gather.padding, codes, padded.data(), std::uint8_t{0});
      codes = padded.data();
    }
    net::for_each_row(rows, depth, [&](std::int64_t r) {
      std::int64_t sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += static_cast<std::int64_t>(values[codes[gather.row[r] + gather.depth[k]]]);
      sums[static_cast<std::size_t>(m * rows + r)] = sum;
    });
  }
  return sums;
}

}  // namespace numemu::policies
