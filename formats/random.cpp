// Philox4x32-10 by Random123, and the project's layout of pieces inside its blocks.
#include "formats/random.hpp"

#include <Random123/philox.h>

namespace numemu {

PhiloxBlock philox(std::uint64_t seed, const PhiloxBlock& counter) {
  const philox4x32_key_t key = {
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const philox4x32_ctr_t input = {{counter[0], counter[1], counter[2], counter[3]}};
  const philox4x32_ctr_t block = philox4x32_R(10, input, key);
  return {block.v[0], block.v[1], block.v[2], block.v[3]};
}

namespace {

// Elements are mostly read in order, and a block has 4 to 16 of them: each thread keeps the last
// one that it computed.
const PhiloxBlock& last_block(std::uint64_t seed, const PhiloxBlock& counter) {
  struct Last {
    std::uint64_t seed;
    PhiloxBlock counter, block;
  };
  static thread_local Last last{0, {}, philox(0, {})};
  if (last.counter != counter || last.seed != seed) last = {seed, counter, philox(seed, counter)};
  return last.block;
}

}  // namespace

std::uint32_t RandomSource::bits(std::uint64_t i, int bits) const {
  const unsigned width = bits <= 8 ? 8 : bits <= 16 ? 16 : 32;  // of a piece
  const std::uint64_t pieces = 128 / width, block_index = i / pieces;
  const auto high = static_cast<std::uint32_t>(block_index >> 32) & 0xffff;
  const PhiloxBlock block =
      last_block(seed, {static_cast<std::uint32_t>(block_index), high | std::uint32_t{draw} << 16,
                        tensor, static_cast<std::uint32_t>(stream)});
  const auto offset = static_cast<unsigned>(i % pieces) * width;  // in bits, little-endian
  const std::uint32_t from_piece = block[offset / 32]
                                   << (32 - width - offset % 32);  // the piece on top
  return from_piece >> (32 - bits);
}

}  // namespace numemu
