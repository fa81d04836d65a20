// Tiles of tcgen05.mma: what the unit would read through descriptors and cells is the tile.
#include "tests/oracle/cuda/layout/tcgen05_tile.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::oracle::recording::tcgen05::tcgen05_tile_test {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Instruction> rows_of(std::set<Kind> kinds) {
  std::vector<Instruction> rows;
  for (const Instruction& i : instructions())
    if (kinds.count(i.kind) != 0) rows.push_back(i);
  return rows;
}

/// `count` codes of e in their containers.
Bytes random_codes(std::mt19937& random, Element e, int count) {
  Bytes codes;
  for (int n = 0; n < count; ++n)
    for (int byte = 0; byte < info(e).bytes; ++byte) {
      const int bits = std::min(8, info(e).bits - 8 * byte);
      codes.push_back(static_cast<std::uint8_t>(random() & ((1u << bits) - 1)));
    }
  return codes;
}

std::uint64_t field(std::uint64_t word, int low, int high) {
  return word >> low & ((std::uint64_t{1} << (high - low + 1)) - 1);
}

/// Elements in 16 bytes and bits of each: PTX ISA, "Packing formats of elements in Tensor and
/// Shared memory"; the 4-bit kinds of block scales pack twice as many.
int elements_in_16_bytes(const Instruction& i, Element e) {
  switch (info(e).bits) {
    case 32:
      return 4;
    case 16:
      return 8;
    case 4:
      return i.kind == Kind::tc5bs && i.k == 64 ? 32 : 16;
    default:
      return 16;
  }
}

/// One element as the unit finds it: it knows the descriptor, the type and the address space.
std::uint64_t element(const Instruction& i, Element e, const Bytes& space, std::uint64_t descriptor,
                      int row, int k) {
  const std::uint64_t start = field(descriptor, 0, 13) * 16;
  const std::uint64_t leading = field(descriptor, 16, 29) * 16;
  const std::uint64_t stride = field(descriptor, 32, 45) * 16;
  const int per = elements_in_16_bytes(i, e);
  const std::uint64_t at = start + static_cast<std::uint64_t>(row / 8) * stride +
                           static_cast<std::uint64_t>(k / per) * leading +
                           static_cast<std::uint64_t>(row % 8) * 16;
  std::uint64_t code = 0;
  for (int bit = 0; bit < info(e).bits; ++bit) {
    const auto n = static_cast<std::uint64_t>(k % per * info(e).bits + bit);
    code |= static_cast<std::uint64_t>(space[at + n / 8] >> n % 8 & 1) << bit;
  }
  return code;
}

/// Lays k codes a row out as the kernel does, then reads all of them through a descriptor.
void check_matrix(const Instruction& i, Element e, const Bytes& codes, int k,
                  const SharedTile& tile) {
  constexpr std::uint32_t kStart = 0x1A480;
  const int per = chunk_elements(i, e);
  REQUIRE(tile.row_bytes / 16 * per == k);
  Bytes space(0x30000);
  std::set<int> offsets;
  for (int row = 0; row < tile.rows; ++row)
    for (int chunk = 0; chunk * per < k; ++chunk) {
      const int offset = tile.place(row, 16 * chunk);
      offsets.insert(offset);
      const Chunk packed = pack_chunk(i, e, codes.data() + (row * k + chunk * per) * info(e).bytes);
      for (int byte = 0; byte < 16; ++byte)
        space[kStart + static_cast<unsigned>(offset + byte)] =
            static_cast<std::uint8_t>(packed.word[byte / 4] >> (8 * (byte % 4)));
    }
  CHECK(static_cast<int>(offsets.size()) * 16 == tile.bytes());  // no place twice, no gap
  CHECK(*offsets.begin() == 0);
  CHECK(*offsets.rbegin() + 16 == tile.bytes());

  const std::uint64_t descriptor = shared_descriptor(kStart, tile);
  for (int row = 0; row < tile.rows; ++row)
    for (int n = 0; n < k; ++n) {
      const std::uint64_t code =
          load_code(codes.data() + (row * k + n) * info(e).bytes, info(e).bytes);
      if (element(i, e, space, descriptor, row, n) != code) {
        CAPTURE(row, n);
        FAIL_CHECK("another element than the tile's");
        return;
      }
    }
}

/// A CuTe layout with its modes laid flat: the first counts fastest.
int at(const std::vector<std::pair<int, int>>& shape_and_stride, int index) {
  int offset = 0;
  for (const auto& [shape, stride] : shape_and_stride) {
    offset += index % shape * stride;
    index /= shape;
  }
  return offset;
}

/// CuTe mma_traits_sm100.hpp, tmem_e_frg of M = 128 in its virtual addresses (lane + 128 position,
/// positions of `bits` bits of metadata); for M = 64 groups of 16 rows stand 32 lanes apart.
struct MetadataLayout {
  std::vector<std::pair<int, int>> m, k;
  int bits;  ///< of metadata an element of K has: four for a group of four or of two
};
MetadataLayout cute_metadata(const Instruction& i) {
  const std::pair<int, int> groups = i.m == 128 ? std::pair(8, 16) : std::pair(4, 32);
  if (i.a == Element::tf32) return {{{8, 1}, {2, 1024}, groups}, {{8, 128}, {2, 8}}, 2};
  if (info(i.a).bits == 16) return {{{8, 1}, {2, 2048}, groups}, {{16, 128}, {2, 8}}, 1};
  return {{{16, 1}, groups}, {{64, 128}}, 1};
}

}  // namespace

TEST_CASE("A and B are found through their shared-memory descriptors", "[fast]") {
  std::mt19937 random(7);
  const auto rows = rows_of({Kind::tc5, Kind::tc5sp, Kind::tc5bs});
  REQUIRE(!rows.empty());
  for (const Instruction& i : rows) {
    CAPTURE(name(i));
    check_matrix(i, i.a, random_codes(random, i.a, i.m * i.kept()), i.kept(), shared_a(i));
    check_matrix(i, i.b, random_codes(random, i.b, i.n * i.k), i.k, shared_b(i));
    CHECK(shared_a(i).row_bytes == 32);  // CuTe: the K of an instruction is 256 bits
    CHECK(shared_b(i).row_bytes == (i.kind == Kind::tc5sp ? 64 : 32));
  }
}

TEST_CASE("a shared-memory descriptor has the constant and nothing it should not", "[fast]") {
  const std::uint64_t descriptor = shared_descriptor(0x2F310, {64, 32});
  CHECK(field(descriptor, 0, 13) == 0x2F31);
  CHECK(field(descriptor, 16, 29) == 64);
  CHECK(field(descriptor, 32, 45) == 8);
  CHECK(field(descriptor, 46, 48) == 1);
  for (const auto& [low, high] : {std::pair(14, 15), std::pair(30, 31), std::pair(49, 63)})
    CHECK(field(descriptor, low, high) == 0);
}

TEST_CASE("FP4 leaves a gap of 8 bytes, FP6 one of 4, packed FP4 none", "[fast]") {
  Instruction i = rows_of({Kind::tc5bs}).front();
  Bytes codes;
  for (int n = 0; n < 32; ++n) codes.push_back(static_cast<std::uint8_t>(n % 16));
  const Chunk fp4 = pack_chunk(i, Element::e2m1, codes.data());
  CHECK(fp4.word[0] == 0x76543210);
  CHECK(fp4.word[1] == 0xFEDCBA98);
  CHECK((fp4.word[2] | fp4.word[3]) == 0);
  const Chunk fp6 = pack_chunk(i, Element::e3m2, codes.data());
  CHECK(fp6.word[0] == (1u << 6 | 2u << 12 | 3u << 18 | 4u << 24 | 5u << 30));
  CHECK(fp6.word[1] == (5u >> 2 | 6u << 4 | 7u << 10 | 8u << 16 | 9u << 22 | 10u << 28));
  CHECK(fp6.word[2] == (10u >> 4 | 11u << 2 | 12u << 8 | 13u << 14 | 14u << 20 | 15u << 26));
  CHECK(fp6.word[3] == 0);
  i.k = 64;
  const Chunk packed = pack_chunk(i, Element::e2m1, codes.data());
  CHECK(packed.word[2] == 0x76543210);
  CHECK(packed.word[3] == 0xFEDCBA98);
}

TEST_CASE("rows of D stand in the lanes that CuTe gives them", "[fast]") {
  for (const Instruction& i : {rows_of({Kind::tc5}).front(), rows_of({Kind::tc5bs}).front()}) {
    CAPTURE(name(i));
    std::vector<int> row_of(128, -1);
    for (int row = 0; row < i.m; ++row)  // tmem_frg: (128):(1) and (16,4):(1,32)
      row_of[static_cast<unsigned>(i.m == 128 ? row : at({{16, 1}, {4, 32}}, row))] = row;
    for (int lane = 0; lane < 128; ++lane)
      CHECK(row_of_lane(i, lane) == row_of[static_cast<unsigned>(lane)]);
  }
}

TEST_CASE("every bit of metadata stands where CuTe puts it", "[fast]") {
  std::mt19937 random(11);
  for (Instruction i : rows_of({Kind::tc5sp}))
    for (const int m : {64, 128}) {
      i.m = m;
      CAPTURE(name(i));
      Bytes metadata;
      for (int n = 0; n < i.m * i.groups(); ++n)
        metadata.push_back(static_cast<std::uint8_t>(random() & 15));
      const MetadataLayout layout = cute_metadata(i);
      int wrong = 0;
      std::set<std::pair<int, int>> used;
      for (int row = 0; row < i.m; ++row)
        for (int k = 0; k < i.k; ++k) {
          const int address = at(layout.m, row) + at(layout.k, k);
          for (int b = 0; b < layout.bits; ++b) {
            const int bit = address / 128 * layout.bits + b;
            used.insert({address % 128, bit});
            const unsigned cell = metadata_cell(i, metadata.data(), address % 128, bit / 32);
            const int n = k * layout.bits + b;  // of the bits of the row
            const unsigned expected =
                metadata[static_cast<unsigned>(row * i.groups() + n / 4)] >> n % 4 & 1u;
            wrong += (cell >> bit % 32 & 1) != expected;
          }
        }
      CHECK(wrong == 0);
      CHECK(static_cast<int>(used.size()) == i.m * i.groups() * 4);
      if (info(i.a).bits > 8)
        for (int lane = 0; lane < 128; ++lane)
          for (int column = 1; column < 4; ++column)
            CHECK(metadata_cell(i, metadata.data(), lane, column) ==
                  metadata_cell(i, metadata.data(), lane, 0));
    }
}

TEST_CASE("scales stand in every 32 lanes, rows by lane and column, blocks by byte", "[fast]") {
  std::mt19937 random(13);
  for (const Instruction& i : rows_of({Kind::tc5bs}))
    for (const int rows : {i.m, i.n}) {
      CAPTURE(name(i), rows);
      Bytes scales;
      for (int n = 0; n < rows * i.scales(); ++n)
        scales.push_back(static_cast<std::uint8_t>(random() & 255));
      for (int row = 0; row < rows; ++row)
        for (int copy = 0; copy < 4; ++copy)
          for (int block = 0; block < i.scales(); ++block) {
            // tmem_sf_frg: ((32, MN/32), 4) : ((1, 512), 32), (VS, NSF) : (0, 128), in bytes
            const int address = at({{32, 1}, {4, 512}}, row) + 32 * copy + 128 * block;
            const int byte = address / 128;
            for (int same = byte % 4; same < 4; same += i.scales())  // other scale ids
              CHECK((scale_cell(i, scales.data(), rows, address % 128, byte / 4) >> (8 * same) &
                     255) == scales[static_cast<unsigned>(row * i.scales() + block)]);
          }
      for (int lane = rows; lane < 32; ++lane)
        CHECK(scale_cell(i, scales.data(), rows, lane, 0) == 0);
    }
}

TEST_CASE("what a tile takes of tensor memory does not overlap", "[fast]") {
  std::set<int> columns;
  int count = 0;
  for (const auto& [first, size] : {std::pair(kColumnOfD, 8), std::pair(kColumnOfMetadata, 4),
                                    std::pair(kColumnOfScaleA, 4), std::pair(kColumnOfScaleB, 4)}) {
    CHECK(first % 4 == 0);
    for (int n = 0; n < size; ++n, ++count) columns.insert(first + n);
  }
  CHECK(static_cast<int>(columns.size()) == count);
  CHECK(*columns.rbegin() < kTensorColumns);
}

}  // namespace numemu::oracle::recording::tcgen05::tcgen05_tile_test
