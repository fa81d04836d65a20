#include "policies/recipe/operand_side.hpp"

#include <algorithm>
#include <cstring>

#include "emu/net/profile.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::policies {

PlainSide::PlainSide(const net::ProductSide& side, const net::SourceCodes& source,
                     std::int64_t rows, std::int64_t depth)
    : format_(source.format),
      gather_(side.gather),
      rows_(rows),
      depth_(depth),
      reader_(side.stack, side.stack.rows(side.source->size()),
              side.stack.width * container_bytes(*source.format), source.codes) {}

OperandRows PlainSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  return {{format_, reader_.at(b), gather_}, nullptr};
}

void multiply_tiles(const unit::Unit& unit, const net::Product& p, OperandSide& a, OperandSide& b,
                    const net::ProductRandom& random, const net::ProductResult& result) {
  net::require_stacks(p);
  const std::int64_t inner = p.d_stack.inner, bytes = result.bytes;
  auto* const out = static_cast<std::byte*>(result.d != nullptr ? result.d : p.d);
  const std::int64_t high = a.rows_at_once(), wide = b.rows_at_once();
  std::vector<std::byte> tile;
  std::uint32_t number = 0;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    std::byte* const matrix = out + (i / inner * p.m * inner + i % inner) * p.n * bytes;
    for (std::int64_t j = 0; j < p.n; j += wide) {
      const std::int64_t n = std::min(wide, p.n - j);
      const OperandRows right = b.rows(i, j, j + n);
      for (std::int64_t r = 0; r < p.m; r += high) {
        const std::int64_t m = std::min(high, p.m - r);
        const OperandRows left = a.rows(i, r, r + m);
        std::byte* const to = matrix + (r * inner * p.n + j) * bytes;
        const bool in_place = n == p.n && inner == 1;
        if (!in_place) tile.resize(static_cast<std::size_t>(m * n * bytes));
        const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                   static_cast<double>(m * n) * static_cast<double>(a.depth()));
        unit.multiply({.m = m,
                       .n = n,
                       .k = a.depth(),
                       .a = left.operand,
                       .b = right.operand,
                       .d = in_place ? to : tile.data(),
                       .scale_a = left.scales,
                       .scale_b = right.scales,
                       .seed = random.seed,
                       .tensor = random.tensor + number++});
        for (std::int64_t y = 0; y < m && !in_place; ++y)
          std::memcpy(to + y * inner * p.n * bytes, tile.data() + y * n * bytes,
                      static_cast<std::size_t>(n * bytes));
      }
    }
  }
}

}  // namespace numemu::policies
