#include "emu/oracle/recording/records.hpp"

#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {
namespace {

/// A record is a tile of one dot.
TileBytes field_bytes(Instruction i) {
  i.m = i.n = 1;
  return tile_bytes(i);
}

}  // namespace

std::size_t record_bytes(const Instruction& i) {
  const TileBytes f = field_bytes(i);
  return f.a + f.b + f.c + f.scale_a + f.scale_b + f.metadata + f.d;
}

RecordView view_record(const Instruction& i, const std::uint8_t* a) {
  const TileBytes f = field_bytes(i);
  const std::uint8_t* b = a + f.a;
  const std::uint8_t* c = b + f.b;
  const std::uint8_t* scale_a = c + f.c;
  const std::uint8_t* scale_b = scale_a + f.scale_a;
  const std::uint8_t* metadata = scale_b + f.scale_b;
  return {a, b, c, scale_a, scale_b, metadata, metadata + f.metadata};
}

}  // namespace numemu::oracle::recording
