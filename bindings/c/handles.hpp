// What the handles of numemu.h hold.
#pragma once
#include <cstdint>
#include <string>

#include "api/units.hpp"
#include "bindings/c/numemu.h"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/conversion.hpp"
#include "formats/format.hpp"
#include "formats/rounding.hpp"

struct numemu_format {
  const numemu::Format* format;
  bool in_double;  ///< a double holds every number
};

struct numemu_rounding {
  numemu::Rounding rounding;
  numemu::Overflow overflow;
};

struct numemu_unit {
  numemu::api::UnitPtr unit;
};

struct numemu_operation {
  numemu::oracle::Subject subject;
  numemu::api::UnitPtr unit;  ///< of the subject, which it keeps
  numemu::oracle::Layout layout;
  std::string line;
};

namespace numemu::c {

/// nullptr for NULL.
inline const Format* format_of(const numemu_format* handle) {
  return handle == nullptr ? nullptr : handle->format;
}

/// To nearest even, saturating for NULL.
inline numemu_rounding rounding_of(const numemu_rounding* handle) {
  return handle == nullptr ? numemu_rounding{{}, Overflow::saturate} : *handle;
}

/// Where random bits come from; `otherwise` is the stream that 0 stands for.
RandomSource random_source(const numemu_random&, Stream otherwise);
/// A conversion to the format as the caller says it.
Conversion conversion_of(const Format&, const numemu_rounding*, const numemu_random*);

numemu_counts counts_of(const FlagCounts&);

}  // namespace numemu::c
