#include "policies/numerics/operands/operand_side.hpp"

#include <algorithm>

#include "emu/net/profile.hpp"
#include "formats/error.hpp"

namespace numemu::policies {

PlainSide::PlainSide(const net::Product& product, net::Side which, const net::SourceCodes& source)
    : format_(source.format),
      gather_(product.side(which).gather),
      rows_(product.rows(which)),
      depth_(product.k),
      reader_(product.side(which), source) {}

OperandRows PlainSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  return {{format_, reader_.at(b), gather_}, nullptr};
}

void multiply_tiles(const unit::Unit& unit, const net::Product& p, OperandSide& a, OperandSide& b,
                    const net::ProductRandom& random, const net::ProductResult& result) {
  net::require_stacks(p);
  net::StackWriter writer(p, result);
  const std::int64_t high = a.rows_at_once(), wide = b.rows_at_once();
  std::uint32_t number = 0;
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    for (std::int64_t j = 0; j < p.n; j += wide) {
      const std::int64_t n = std::min(wide, p.n - j);
      const OperandRows right = b.rows(i, j, j + n);
      for (std::int64_t r = 0; r < p.m; r += high) {
        const std::int64_t m = std::min(high, p.m - r);
        const OperandRows left = a.rows(i, r, r + m);
        const net::Section section(net::SectionKind::gemm, p.layer, net::to_string(p.kind),
                                   static_cast<double>(m * n) * static_cast<double>(a.depth()));
        unit.multiply({.m = m,
                       .n = n,
                       .k = a.depth(),
                       .a = left.operand,
                       .b = right.operand,
                       .d = writer.tile(i, r, m, j, n),
                       .scale_a = left.scales,
                       .scale_b = right.scales,
                       .seed = random.seed,
                       .tensor = random.tensor + number++});
        writer.write();
      }
    }
  }
}

}  // namespace numemu::policies
