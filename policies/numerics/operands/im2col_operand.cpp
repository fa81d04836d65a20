#include "policies/numerics/operands/im2col_operand.hpp"

#include <cstdint>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/product.hpp"

namespace numemu::policies {

Im2colOperand::Im2colOperand(const net::Product& product, net::Side which)
    : side_(product.side(which)) {
  const net::ProductSide& side = product.side(which);
  const unit::Gather& from = *side.gather;
  const std::int64_t count = side.stack.count(), rows = std::ssize(from.row), k = product.k;
  matrices_ = net::Tensor({count * rows, k});
  net::StackReader reader(side);
  std::vector<float> padded;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto* source = reinterpret_cast<const float*>(reader.at(b));
    if (!from.padding.identity()) {
      padded.resize(static_cast<std::size_t>(from.padding.padded_size()));
      unit::pad(from.padding, source, padded.data(), 0.0f);
      source = padded.data();
    }
    float* const to = matrices_.data.data() + b * rows * k;
    net::for_each_row(rows, k, [&](std::int64_t r) {
      const float* const line = source + from.row[static_cast<std::size_t>(r)];
      for (std::int64_t i = 0; i < k; ++i)
        to[r * k + i] = line[from.depth[static_cast<std::size_t>(i)]];
    });
  }
  gather_ = unit::Gather::matrix(rows, k);
  side_.source = &matrices_;
  side_.gather = &gather_;
  side_.stack = {.outer = count, .inner = 1, .width = k};
  side_.along_rows = false;
}

}  // namespace numemu::policies
