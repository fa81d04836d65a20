// Many products of one shape, such as independent dots: small ones are computed in stacks.
#pragma once
#include <cstdint>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

/// `count` products of one unit, shape, formats and gathers. The operands, scales, metadata, C and
/// D of product p follow those of product p - 1. Output (i, j) of product p is number
/// (p m + i) n + j, with which a stochastic register draws: product 0 draws as it does alone.
struct Batch {
  Gemm first;  ///< product 0, without prepared operands
  std::int64_t count = 1;
  /// Elements from one A, or B, to the next; 0: all products share it, its scales and metadata.
  std::int64_t a_stride = 0, b_stride = 0;
  bool c_shared = false;

  std::int64_t outputs() const { return count * first.m * first.n; }
};

/// Products [begin, end) of a batch; their outputs are numbered from 0 again.
Batch slice(const Unit&, const Batch&, std::int64_t begin, std::int64_t end);

/// Computes all products, over OpenMP threads unless already inside a parallel region. Throws Error
/// as Unit::multiply() does.
void multiply_batch(const Unit&, const Batch&);
/// Those bits by the specification. `flags`: null, or one byte for each output, its exception
/// flags; they need a unit with a floating register (require_flags).
void multiply_batch_reference(const Unit&, const Batch&, std::uint8_t* flags = nullptr);
/// Throws Error naming the unit if its outputs have no exception flags.
void require_flags(const Unit&);

}  // namespace numemu::unit
