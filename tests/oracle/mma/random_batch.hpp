// Random operands for any described unit, and the numbers of its steps that invariances need.
#pragma once
#include <cstdint>

#include "emu/unit/unit.hpp"
#include "tests/oracle/mma/golden_batch.hpp"
#include "tests/oracle/mma/live_data.hpp"

namespace numemu::oracle::mma {

enum class Codes {
  all,  ///< every code, specials and zeros among them (of wide formats: in a few binades, mostly)
  middle,  ///< normal numbers around 1 whose double and half are normal, too
};

/// One product of a dense unit; k is a number of elements. `any` is the format of operands that
/// may have any (float16 if not given).
Batch random_batch(const unit::Unit&, std::int64_t m, std::int64_t n, std::int64_t k, Codes, Words&,
                   const Format* any = nullptr);

/// Element `index` of an array of codes.
std::uint64_t get_code(const std::string& bytes, std::int64_t index, const Format*);
void set_code(std::string& bytes, std::int64_t index, const Format*, std::uint64_t code);
/// Bytes of an element; int32 without a format.
std::int64_t width_of(const Format*);
/// A code that stands for a normal number, times 2^power. Only where the result is normal.
std::uint64_t scaled_code(const Format&, std::uint64_t code, int power);
/// Whether a code is a normal number.
bool is_normal(const Format&, std::uint64_t code);

}  // namespace numemu::oracle::mma
