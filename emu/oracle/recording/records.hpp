// Records: single dots with their answers, in the layout of the golden files of the matrix units.
#pragma once
#include <cstddef>
#include <cstdint>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// One record: a[kept] b[K] c scale_a[nscale] scale_b[nscale] metadata[nmeta] d, each code in its
/// container, metadata a byte per word of four bits; no padding.
struct RecordView {
  const std::uint8_t *a, *b, *c, *scale_a, *scale_b, *metadata, *d;
};
std::size_t record_bytes(const Instruction&);
RecordView view_record(const Instruction&, const std::uint8_t* bytes);

}  // namespace numemu::oracle::recording
