// One unit over all matrices of a product: codes in, results out, and where matrices of stacks lie.
#pragma once
#include <cstddef>
#include <vector>

#include "emu/net/numerics.hpp"

namespace numemu {
struct Format;
namespace unit {
class Unit;
class PreparedOperand;
}  // namespace unit
}  // namespace numemu

namespace numemu::net {

/// The codes of a whole source tensor, in the container of their format.
struct SourceCodes {
  const Format* format = nullptr;
  const void* codes = nullptr;
  /// Of the side, where its stack is one matrix: what unit.prepare() gave; or null.
  const unit::PreparedOperand* prepared = nullptr;
};

/// Where a product's random bits come from (units with stochastic registers).
struct ProductRandom {
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0;  ///< matrix b of the stack draws with tensor + b
};

/// Where the results go: elements of `bytes` bytes that lie as D does. Null: the product's d.
struct ProductResult {
  void* d = nullptr;
  std::int64_t bytes = sizeof(float);
};

/// The matrices of a stack of rows, read in place where each lies together, else copied out.
class StackReader {
 public:
  /// Of a side's source: its float32 numbers, or others in their place; its codes.
  explicit StackReader(const ProductSide& side) : StackReader(side, side.source->data.data()) {}
  StackReader(const ProductSide&, const float* numbers);
  StackReader(const ProductSide&, const SourceCodes&);
  /// `data` is [outer, rows, inner] rows of `row_bytes` bytes each.
  StackReader(const Stack&, std::int64_t rows, std::int64_t row_bytes, const void* data);
  /// Matrix b, valid until the next call.
  const std::byte* at(std::int64_t b);

 private:
  Stack stack_;
  std::int64_t rows_, bytes_;
  const std::byte* data_;
  std::vector<std::byte> copy_;
};

/// The matrices of a product's results, written in place where rows lie together, else copied
/// there.
class StackWriter {
 public:
  StackWriter(const Product&, const ProductResult&);
  /// Element (r, column) of matrix b.
  std::byte* at(std::int64_t b, std::int64_t r, std::int64_t column = 0) const;
  /// Room for columns [column, column + n) of rows [r, r + m) of matrix b, one after another;
  /// write() then puts them where they belong.
  std::byte* tile(std::int64_t b, std::int64_t r, std::int64_t m, std::int64_t column,
                  std::int64_t n);
  void write() const;

 private:
  Stack stack_;
  std::int64_t rows_, columns_, bytes_;
  std::byte* d_;
  std::byte* to_ = nullptr;  ///< of the tile in copy_; null: it is in place
  std::int64_t tile_rows_ = 0, tile_bytes_ = 0;
  std::vector<std::byte> copy_;
};

/// Throws Error where a side's stack has neither one matrix nor as many as the results.
void require_stacks(const Product&);

/// D of every matrix. Stacks with inner matrices are copied matrix by matrix, so that each is read
/// where it lies together; others are read in place.
void multiply(const unit::Unit&, const Product&, const SourceCodes& a, const SourceCodes& b,
              const ProductRandom& = {}, const ProductResult& = {});

}  // namespace numemu::net
