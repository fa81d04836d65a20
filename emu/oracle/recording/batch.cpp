#include "emu/oracle/recording/batch.hpp"

namespace numemu::oracle::recording {

// PTX ISA, "Sparse matrix storage": 0b0100 keeps elements (pairs) 0 and 1 of four, and in 1:2 the
// first.
constexpr std::uint8_t kFirstKept = 0b0100;

Batch::Batch(const Instruction& i, int tiles) : instruction(&i), count(tiles) {
  const TileBytes bytes = tile_bytes(i);
  const auto size = [tiles](std::size_t of_tile) {
    return of_tile * static_cast<std::size_t>(tiles);
  };
  a.resize(size(bytes.a));
  b.resize(size(bytes.b));
  c.resize(size(bytes.c));
  metadata.assign(size(bytes.metadata), kFirstKept);
  scale_a.resize(size(bytes.scale_a));
  scale_b.resize(size(bytes.scale_b));
  d.resize(size(bytes.d));
}

}  // namespace numemu::oracle::recording
