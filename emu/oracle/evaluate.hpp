// The results that records must have: each subject computed exactly, or by the unit's reference.
#pragma once
#include <cstdint>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {

/// Writes the fields that are results, from the others: out or d, and flags. The records are of
/// layout_of(subject). Single-threaded, reentrant. Throws Error naming the record's number for
/// codes that their format does not have, and for metadata that is not a legal pattern.
void evaluate(const Subject&, Records&);

/// The exact result of record i before its rounding: the number, the product, the sum of all
/// products and c. Of units, too: what an exact unit would round. At most 64 leading bits and a
/// sticky bit.
Value exact_result(const Subject&, const Records&, std::int64_t i);

}  // namespace numemu::oracle
