// The results that records must have: each subject computed exactly, or by the unit's reference.
#pragma once
#include <cstdint>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/error.hpp"
#include "formats/value.hpp"

namespace numemu::unit {
struct ShortEnds;
}

namespace numemu::oracle {

/// What is wrong with the inputs of a record: "record 5: in: 0x7 is not a code of ...".
class RecordError : public Error {
 public:
  RecordError(std::int64_t number, const std::string& what);
  std::int64_t record;  ///< its number in the batch
  std::string text;     ///< without that number
};

/// Writes the fields that are results, from the others: out or d, and flags. The records are of
/// layout_of(subject). Single-threaded, reentrant. Throws RecordError for codes that their format
/// does not have, and for metadata that is not a legal pattern.
/// `ends`: of a unit, those of its registers.
void evaluate(const Subject&, Records&, const unit::ShortEnds* ends = nullptr);

/// The exact result of record i before its rounding: the number, the product, the sum of all
/// products and c. Of units, too: what an exact unit would round. At most 64 leading bits and a
/// sticky bit.
Value exact_result(const Subject&, const Records&, std::int64_t i);

}  // namespace numemu::oracle
