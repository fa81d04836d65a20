// Tiles of one instruction: plain row-major arrays of codes in their containers, on the host or on
// the GPU.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emu/oracle/recording/instruction.hpp"

namespace numemu::oracle::recording {

/// `count` tiles, one after the other. Every B is stored by columns, so that each dot reads k codes
/// in a row.
struct Tiles {
  const std::uint8_t* a = nullptr;  ///< [m][kept]
  const std::uint8_t* b = nullptr;  ///< [n][k]
  const std::uint8_t* c = nullptr;  ///< [m][n]
  const std::uint8_t* metadata =
      nullptr;  ///< [m][groups], four bits a byte; PTX ISA "Sparse matrix storage"
  const std::uint8_t* scale_a = nullptr;  ///< [m][scales]
  const std::uint8_t* scale_b = nullptr;  ///< [n][scales]
  std::uint8_t* d = nullptr;              ///< [m][n]
  int count = 0;
};

/// Bytes of one tile of each array.
struct TileBytes {
  std::size_t a, b, c, metadata, scale_a, scale_b, d;
};
NUMEMU_HD constexpr TileBytes tile_bytes(const Instruction& i) {
  const auto bytes = [](int rows, int columns, Element e) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) *
           static_cast<std::size_t>(info(e).bytes);
  };
  return {bytes(i.m, i.kept(), i.a),
          bytes(i.n, i.k, i.b),
          bytes(i.m, i.n, i.c),
          static_cast<std::size_t>(i.m) * static_cast<std::size_t>(i.groups()),
          static_cast<std::size_t>(i.m) * static_cast<std::size_t>(i.scales()),
          static_cast<std::size_t>(i.n) * static_cast<std::size_t>(i.scales()),
          bytes(i.m, i.n, i.d)};
}

/// Tiles that the host owns, all codes zero; metadata keeps the first of each group (a valid
/// choice).
struct Batch {
  Batch(const Instruction& instruction, int count);

  const Instruction* instruction;
  int count;
  std::vector<std::uint8_t> a, b, c, metadata, scale_a, scale_b, d;

  Tiles tiles() {
    return {a.data(),       b.data(),       c.data(), metadata.data(),
            scale_a.data(), scale_b.data(), d.data(), count};
  }
};

/// A code of `bytes` bytes, little-endian.
NUMEMU_HD inline std::uint64_t load_code(const std::uint8_t* at, int bytes) {
  std::uint64_t code = 0;
  for (int i = 0; i < bytes; ++i) code |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return code;
}
NUMEMU_HD inline void store_code(std::uint8_t* at, int bytes, std::uint64_t code) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(code >> (8 * i));
}

}  // namespace numemu::oracle::recording
