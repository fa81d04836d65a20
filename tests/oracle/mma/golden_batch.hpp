// Products whose results are known from outside, packed as a unit takes them, and their comparison.
#pragma once
#include <cstdint>
#include <string>

#include "emu/unit/unit.hpp"
#include "formats/format.hpp"

namespace numemu::oracle::mma {

/// `count` products of one shape. Each array holds the elements of all products one after another,
/// in the containers of the unit, as raw bytes.
struct Batch {
  std::string unit;
  std::int64_t count = 0, m = 1, n = 1, k = 0;
  const Format *a_format = nullptr, *b_format = nullptr;
  bool b_is_k_by_n = false;
  /// Of C and D, which have the same width; the format in which NaN is recognised.
  const Format* result = nullptr;  ///< nullptr: int32
  std::string a, b, c, d, scale_a, scale_b;
};

/// How NaN is compared: with all its bits, or as a class where its bits are artefacts of a host.
enum class NanMatch { bits, any };

/// What computes the result.
enum class Way {
  reference,    ///< multiply_reference, product by product
  fast,         ///< multiply, product by product
  fast_blocks,  ///< multiply on blocks of 32 dots as one 32 x 32 product, its diagonal compared
};
const char* to_string(Way);

struct Tally {
  std::int64_t records = 0, matches = 0, nan = 0;
  std::string first;  ///< difference, in words; or why nothing could be compared
  std::int64_t mismatches() const { return records - matches; }
};

/// Compares every element of D. Records are elements of D. fast_blocks is for single dots
/// (m = n = 1).
Tally compare(const Batch&, Way, NanMatch);

/// The D a unit computes for the batch.
std::string computed(const Batch&, Way);

}  // namespace numemu::oracle::mma
