#include "policies/numerics/operands/plain_side.hpp"

#include "formats/error.hpp"

namespace numemu::policies {

PlainSide::PlainSide(const net::ProductSide& side, const net::SourceCodes& source,
                     std::int64_t rows, std::int64_t depth)
    : format_(source.format),
      gather_(side.gather),
      rows_(rows),
      depth_(depth),
      reader_(side, source) {}

OperandRows PlainSide::rows(std::int64_t b, std::int64_t begin, std::int64_t end) {
  if (begin != 0 || end != rows_) throw Error("an operand in place has no tiles");
  return {{format_, reader_.at(b), gather_}, nullptr};
}

}  // namespace numemu::policies
