#include "emu/net/product.hpp"

#include <cstring>

#include "emu/net/profile.hpp"
#include "emu/unit/unit.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::net {

StackReader::StackReader(const ProductSide& side, const float* numbers)
    : StackReader(side.stack, side.stack.rows(side.source->size()),
                  side.stack.width * static_cast<std::int64_t>(sizeof(float)), numbers) {}

StackReader::StackReader(const ProductSide& side, const SourceCodes& source)
    : StackReader(side.stack, side.stack.rows(side.source->size()),
                  side.stack.width * container_bytes(*source.format), source.codes) {}

StackReader::StackReader(const Stack& stack, std::int64_t rows, std::int64_t row_bytes,
                         const void* data)
    : stack_(stack), rows_(rows), bytes_(row_bytes), data_(static_cast<const std::byte*>(data)) {}

const std::byte* StackReader::at(std::int64_t b) {
  if (stack_.count() == 1) return data_;
  const std::byte* from = data_ + stack_.row(b, 0, rows_) * bytes_;
  if (stack_.inner == 1) return from;
  copy_.resize(static_cast<std::size_t>(rows_ * bytes_));
  for (std::int64_t r = 0; r < rows_; ++r)
    std::memcpy(copy_.data() + r * bytes_, from + r * stack_.inner * bytes_,
                static_cast<std::size_t>(bytes_));
  return copy_.data();
}

StackWriter::StackWriter(const Product& p, const ProductResult& result)
    : stack_(p.d_stack),
      rows_(p.m),
      columns_(p.n),
      bytes_(result.bytes),
      d_(static_cast<std::byte*>(result.d != nullptr ? result.d : p.d)) {}

std::byte* StackWriter::at(std::int64_t b, std::int64_t r, std::int64_t column) const {
  return d_ + (stack_.row(b, r, rows_) * columns_ + column) * bytes_;
}

std::byte* StackWriter::tile(std::int64_t b, std::int64_t r, std::int64_t m, std::int64_t column,
                             std::int64_t n) {
  std::byte* const to = at(b, r, column);
  to_ = n == columns_ && stack_.inner == 1 ? nullptr : to;
  if (to_ == nullptr) return to;
  tile_rows_ = m;
  tile_bytes_ = n * bytes_;
  copy_.resize(static_cast<std::size_t>(m * tile_bytes_));
  return copy_.data();
}

void StackWriter::write() const {
  if (to_ == nullptr) return;
  for (std::int64_t r = 0; r < tile_rows_; ++r)
    std::memcpy(to_ + r * stack_.inner * columns_ * bytes_, copy_.data() + r * tile_bytes_,
                static_cast<std::size_t>(tile_bytes_));
}

void require_stacks(const Product& p) {
  const std::int64_t count = p.d_stack.count();
  for (const ProductSide* side : {&p.a, &p.b}) {
    if (side->stack.count() == 1 || side->stack.count() == count) continue;
    throw Error("product " + std::string(p.layer) + ": a stack of " +
                std::to_string(side->stack.count()) + " matrices for " + std::to_string(count) +
                " results");
  }
}

void multiply(const unit::Unit& unit, const Product& p, const SourceCodes& a, const SourceCodes& b,
              const ProductRandom& random, const ProductResult& result) {
  require_stacks(p);
  StackReader left(p.a, a), right(p.b, b);
  StackWriter writer(p, result);
  for (std::int64_t i = 0; i < p.d_stack.count(); ++i) {
    const Section section(SectionKind::gemm, p.layer, to_string(p.kind),
                          static_cast<double>(p.m * p.n) * static_cast<double>(p.k));
    unit.multiply({.m = p.m,
                   .n = p.n,
                   .k = p.k,
                   .a = {a.format, left.at(i), p.a.gather, a.prepared},
                   .b = {b.format, right.at(i), p.b.gather, b.prepared},
                   .c = nullptr,
                   .d = writer.tile(i, 0, p.m, 0, p.n),
                   .seed = random.seed,
                   .tensor = random.tensor + static_cast<std::uint32_t>(i)});
    writer.write();
  }
}

}  // namespace numemu::net
