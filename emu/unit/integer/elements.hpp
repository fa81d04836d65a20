// An integer operand ready to be packed: its padded source as elements of 1, 2 or 4 bytes.
#pragma once
#include <hwy/aligned_allocator.h>

#include <cstdint>
#include <vector>

#include "emu/unit/unit.hpp"

namespace numemu::unit {

// Aligned buffers that a thread keeps for its next product: fresh pages cost as much as packing.

/// Uninitialised bytes, aligned for vectors. Release them on the thread that allocated them.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(std::int64_t bytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;

  std::uint8_t* get() const { return memory_.get(); }

 private:
  using Memory = hwy::AlignedFreeUniquePtr<std::uint8_t[]>;
  struct Kept;
  static Kept& kept();

  Memory memory_;
  std::int64_t bytes_ = 0;
};

/// Bytes of depth that one tile holds per row: 16 words of 4 bytes.
constexpr std::int64_t kChunkBytes = 64;
constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kTileBytes = kTileRows * kChunkBytes;

/// How a code becomes an element: (((code & mask) ^ flip) << shift) - subtract, in as many bits as
/// the element has. Flipping the sign bit and subtracting it extends the sign. No shift into bytes
/// or halves.
struct ElementRule {
  std::uint32_t mask = 0, flip = 0;
  int shift = 0;
  std::uint32_t subtract = 0;
};

/// Elements that are neighbours in the source and in their chunk.
struct DepthRun {
  std::int64_t from = 0;  ///< bytes from the first element of a row
  int to = 0;             ///< bytes from the start of the chunk
  int bytes = 0;
};

/// Element (r, k) = element row[r] + depth[k] of `bytes`. Copies may read kChunkBytes beyond any
/// element.
struct Elements {
  Scratch bytes;
  int size = 1;        ///< bytes of one element
  bool signs = false;  ///< of each element only bit 0 is packed
  const std::int32_t* row = nullptr;
  std::int64_t rows = 0, depth = 0;
  const std::int32_t* depths = nullptr;
  std::vector<DepthRun> runs;            ///< of all chunks of kChunkBytes, in order
  std::vector<std::int32_t> chunk_runs;  ///< where those of each chunk begin, and the end

  /// Elements of one packed chunk.
  std::int64_t per_chunk() const { return signs ? kChunkBytes * 8 : kChunkBytes / size; }
  std::int64_t chunks() const { return (depth + per_chunk() - 1) / per_chunk(); }
};

/// Reads an operand whose format has at most 16 bits; padding is code 0. Throws Error as
/// source_size() does.
Elements read_elements(const Operand&, std::int64_t rows, std::int64_t depth, int size,
                       const ElementRule&);

/// That operand through a table of 256 bytes per plane; 8-bit containers only, and only where
/// the CPU has AVX-512 VBMI (every one with AMX does).
std::vector<Elements> read_planes(const Operand&, std::int64_t rows, std::int64_t depth,
                                  const std::vector<std::vector<std::uint8_t>>& tables);

/// Smallest and largest table entry over `count` codes; tables of 256. AVX-512 VBMI.
struct ByteRange {
  std::uint8_t low = 255, high = 0;
};
ByteRange range_of_bytes(const std::uint8_t* codes, std::int64_t count,
                         const std::vector<std::uint8_t>& low_table,
                         const std::vector<std::uint8_t>& high_table);

}  // namespace numemu::unit
