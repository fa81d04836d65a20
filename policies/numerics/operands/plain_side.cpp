#include "policies/numerics/operands/plain_side.hpp"

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

}  // namespace numemu::policies
