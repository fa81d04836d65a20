// Places of a tile in shared memory: each byte has its own, and they are those of the canonical
// layout of PTX.
#include "tests/oracle/cuda/layout/shared_tile.hpp"

#include <vector>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::shared_tile_test {
namespace {

const std::vector<SharedTile> kTiles = {{8, 32},  {8, 64},  {16, 32},  {16, 64},
                                        {64, 32}, {64, 64}, {128, 32}, {128, 128}};

TEST_CASE("a tile fills its bytes of shared memory, each once", "[fast]") {
  for (const SharedTile& tile : kTiles) {
    CAPTURE(tile.rows, tile.row_bytes);
    std::vector<int> taken(static_cast<std::size_t>(tile.bytes()), 0);
    for (int row = 0; row < tile.rows; ++row)
      for (int byte = 0; byte < tile.row_bytes; ++byte)
        ++taken.at(static_cast<std::size_t>(tile.place(row, byte)));
    CHECK(taken == std::vector<int>(taken.size(), 1));
  }
}

/// PTX ISA, wgmma, "Canonical Layouts", example "K-Major, no-swizzling and tf32 type": 16 rows of
/// 16 elements lie at ((8,2),(4,4)):((4,32),(1,64)), in elements.
TEST_CASE("the example of PTX ISA has the same places and steps", "[fast]") {
  constexpr SharedTile kTile{16, 64};
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k) {
      const int element = row % 8 * 4 + row / 8 * 32 + k % 4 * 1 + k / 4 * 64;
      for (int byte = 0; byte < 4; ++byte)
        REQUIRE(kTile.place(row, 4 * k + byte) == 4 * element + byte);
    }
  CHECK(kTile.along_k() == 64 * 4);
  CHECK(kTile.along_rows() == 32 * 4);
}

TEST_CASE("a core matrix is 128 bytes in a row, aligned to 128", "[fast]") {
  for (const SharedTile& tile : kTiles)
    for (int row = 0; row < tile.rows; row += kCoreRows)
      for (int byte = 0; byte < tile.row_bytes; byte += kCoreRowBytes) {
        const int first = tile.place(row, byte);
        CAPTURE(tile.rows, tile.row_bytes, row, byte);
        CHECK(first % 128 == 0);
        for (int at = 0; at < 128; ++at)
          REQUIRE(tile.place(row + at / kCoreRowBytes, byte + at % kCoreRowBytes) == first + at);
      }
}

TEST_CASE("a tile of eight rows has one step for both directions", "[fast]") {
  for (const int row_bytes : {32, 64}) {
    const SharedTile tile{8, row_bytes};
    CHECK(tile.along_k() == 128);
    CHECK(tile.along_rows() == 128);
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::shared_tile_test
