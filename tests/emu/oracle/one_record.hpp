// The result of an operation for one record.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"

namespace numemu::oracle::one_record {

/// Of the codes of its operands, in the order of the subject's fields.
inline Encoded result_of(const Subject& s, std::initializer_list<std::uint64_t> operands) {
  const Layout layout = layout_of(s);
  Records records(layout, 1);
  std::size_t f = 0;
  for (const std::uint64_t code : operands) records.columns[f++][0] = code;
  evaluate(s, records);
  return {records.columns[f][0], static_cast<std::uint8_t>(records.columns[f + 1][0])};
}

}  // namespace numemu::oracle::one_record
