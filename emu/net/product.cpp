#include "emu/net/product.hpp"

#include <cstring>

#include "emu/net/profile.hpp"
#include "emu/unit/unit.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

StackReader reader(const ProductSide& side, const SourceCodes& source) {
  return {side.stack, side.stack.rows(side.source->size()),
          side.stack.width * container_bytes(*source.format), source.codes};
}

}  // namespace

StackReader::StackReader(const Stack& stack, std::int64_t rows, std::int64_t row_bytes,
                         const void* data)
    : outer_(stack.outer),
      inner_(stack.inner),
      rows_(rows),
      bytes_(row_bytes),
      data_(static_cast<const std::byte*>(data)) {}

const std::byte* StackReader::at(std::int64_t b) {
  if (outer_ * inner_ == 1) return data_;
  if (inner_ == 1) return data_ + b * rows_ * bytes_;
  copy_.resize(static_cast<std::size_t>(rows_ * bytes_));
  const std::byte* from = data_ + (b / inner_ * rows_ * inner_ + b % inner_) * bytes_;
  for (std::int64_t r = 0; r < rows_; ++r)
    std::memcpy(copy_.data() + r * bytes_, from + r * inner_ * bytes_,
                static_cast<std::size_t>(bytes_));
  return copy_.data();
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
  const std::int64_t count = p.d_stack.count(), inner = p.d_stack.inner;
  const std::int64_t row = p.n * result.bytes;
  auto* const out = static_cast<std::byte*>(result.d != nullptr ? result.d : p.d);
  StackReader left = reader(p.a, a), right = reader(p.b, b);
  std::vector<std::byte> together(static_cast<std::size_t>(inner > 1 ? p.m * row : 0));
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* const d = inner > 1 ? together.data() : out + i * p.m * row;
    const Section section(SectionKind::gemm, p.layer, to_string(p.kind),
                          static_cast<double>(p.m * p.n) * static_cast<double>(p.k));
    unit.multiply({.m = p.m,
                   .n = p.n,
                   .k = p.k,
                   .a = {a.format, left.at(i), p.a.gather, a.prepared},
                   .b = {b.format, right.at(i), p.b.gather, b.prepared},
                   .c = nullptr,
                   .d = d,
                   .seed = random.seed,
                   .tensor = random.tensor + static_cast<std::uint32_t>(i)});
    if (inner == 1) continue;
    std::byte* to = out + (i / inner * p.m * inner + i % inner) * row;
    for (std::int64_t r = 0; r < p.m; ++r)
      std::memcpy(to + r * inner * row, d + r * row, static_cast<std::size_t>(row));
  }
}

}  // namespace numemu::net
