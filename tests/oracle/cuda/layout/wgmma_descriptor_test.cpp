// The operands of wgmma, read back as PTX and CuTe describe them: the descriptor, B in shared
// memory, and the registers of the warpgroup.
#include "tests/oracle/cuda/layout/wgmma_descriptor.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/oracle/cuda/layout/fragment.hpp"
#include "tests/oracle/cuda/layout/metadata.hpp"

namespace numemu::oracle::recording::wgmma_descriptor_test {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr int kTileCount = 3;
constexpr std::uint32_t kWindow = 0x40000;  // what 18 bits of address reach

std::vector<Instruction> wgmma_rows() {
  std::vector<Instruction> rows;
  for (const Instruction& i : instructions())
    if (i.kind == Kind::wgmma || i.kind == Kind::wgmmasp) rows.push_back(i);
  return rows;
}

Bytes random_bytes(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

Bytes random_metadata(std::mt19937& random, const Instruction& i, std::size_t count) {
  const Bytes words = i.sparsity == Sparsity::one_of_two
                          ? Bytes{0b0100, 0b1110}
                          : Bytes{0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  Bytes metadata(count);
  for (std::uint8_t& word : metadata) word = words[random() % words.size()];
  return metadata;
}

/// Tiles of random codes, and room for D.
struct Operands {
  Operands(std::mt19937& random, const Instruction& i)
      : a(random_bytes(random, kTileCount * tile_bytes(i).a)),
        b(random_bytes(random, kTileCount * tile_bytes(i).b)),
        c(random_bytes(random, kTileCount * tile_bytes(i).c)),
        metadata(random_metadata(random, i, kTileCount * tile_bytes(i).metadata)),
        d(kTileCount * tile_bytes(i).d) {}

  Tiles tiles() {
    return {a.data(), b.data(), c.data(), metadata.data(), nullptr, nullptr, d.data(), kTileCount};
  }

  Bytes a, b, c, metadata, d;
};

/// A CuTe layout: mode m counts to shape[m] in steps of stride[m], the first mode fastest.
struct Layout {
  std::vector<int> shape, stride;
  int operator()(int index) const {
    int at = 0;
    for (std::size_t mode = 0; mode < shape.size(); ++mode) {
      at += index % shape[mode] * stride[mode];
      index /= shape[mode];
    }
    return at;
  }
};
/// Of a fragment: the position of value v of thread t in a matrix of 64 rows stored by columns.
struct ThreadLayout {
  Layout thread, value;
  int operator()(int t, int v) const { return thread(t) + value(v); }
};

/// ALayout_64x8 to ALayout_64x64 of mma_traits_sm90_gmma.hpp, by logical k.
ThreadLayout a_layout(int k) {
  switch (k) {
    case 8:
      return {{{4, 8, 4}, {64, 1, 16}}, {{2, 2}, {8, 256}}};
    case 16:
      return {{{4, 8, 4}, {128, 1, 16}}, {{2, 2, 2}, {64, 8, 512}}};
    case 32:
      return {{{4, 8, 4}, {256, 1, 16}}, {{4, 2, 2}, {64, 8, 1024}}};
    default:
      return {{{4, 8, 4}, {512, 1, 16}}, {{8, 2, 2}, {64, 8, 2048}}};
  }
}
/// CLayout_64x8.
ThreadLayout c_layout() { return {{{4, 8, 4}, {128, 1, 16}}, {{2, 2}, {64, 8}}}; }
/// ELayout_64x16 to ELayout_64x64 of mma_traits_sm90_gmma_sparse.hpp.
ThreadLayout e_layout(int k) {
  switch (k) {
    case 16:
      return {{{2, 2, 8, 4}, {512, 0, 1, 16}}, {{8, 2}, {64, 8}}};
    case 32:
      return {{{2, 2, 8, 4}, {1024, 0, 1, 16}}, {{16, 2}, {64, 8}}};
    default:
      return {{{2, 2, 8, 4}, {8, 2048, 1, 16}}, {{32}, {64}}};
  }
}

/// B of one tile in a shared memory of random bytes, and its descriptor.
struct Shared {
  Shared(std::mt19937& random, const SharedTile& tile, const std::uint8_t* b)
      : image(random_bytes(random, kWindow)) {
    const std::uint32_t address = 128 * static_cast<std::uint32_t>(random() % 2000);
    for (int at = 0; at < tile.bytes(); ++at)
      image.at(address + static_cast<std::uint32_t>(
                             tile.place(at / tile.row_bytes, at % tile.row_bytes))) = b[at];
    descriptor = wgmma_descriptor(address, tile);
  }

  Bytes image;
  std::uint64_t descriptor;
};

std::uint32_t field(std::uint64_t word, int high, int low) {
  return static_cast<std::uint32_t>(word >> low & ((1ULL << (high - low + 1)) - 1));
}

/// B[n][k] by the canonical layout ((8,m),(T,2k)):((1T,SBO),(1,LBO)) of PTX ISA, in elements.
Bytes read_b(const Shared& shared, int n, int k, int element_bytes, bool swapped = false) {
  const std::uint64_t word = shared.descriptor;
  REQUIRE(field(word, 63, 62) == 0);
  REQUIRE(field(word, 51, 49) == 0);
  const int start = static_cast<int>(field(word, 13, 0)) * 16 / element_bytes;
  const int leading = static_cast<int>(field(word, 29, 16)) * 16 / element_bytes;
  const int stride = static_cast<int>(field(word, 45, 32)) * 16 / element_bytes;
  const int t = 128 / (8 * element_bytes);
  const Layout rows{{8, n / 8}, {t, swapped ? leading : stride}};
  const Layout columns{{t, k / t}, {1, swapped ? stride : leading}};
  Bytes b;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < k; ++column)
      for (int byte = 0; byte < element_bytes; ++byte)
        b.push_back(shared.image.at(static_cast<std::size_t>(
            (start + rows(row) + columns(column)) * element_bytes + byte)));
  return b;
}

/// The codes of a register file of 32-bit registers, `bits` each.
std::uint64_t code_at(const std::vector<std::uint32_t>& registers, int index, int bits) {
  const int per = 32 / bits;
  const std::uint64_t word = registers.at(static_cast<std::size_t>(index / per));
  return word >> (index % per * bits) & ((1ULL << bits) - 1);
}

/// Which of the k of its group kept value j of a word stands for.
int kept_index(const Instruction& i, int word, int j) {
  return i.sparsity == Sparsity::one_of_two ? (word == 0b1110 ? 1 : 0) : word >> (2 * j) & 3;
}

/// The k of kept value j in a row whose four-bit words are `words`.
int k_of(const Instruction& i, const std::vector<int>& words, int j) {
  if (i.sparsity == Sparsity::dense) return j;
  const int per = i.group() / 2;
  return j / per * i.group() + kept_index(i, words.at(static_cast<std::size_t>(j / per)), j % per);
}

/// D = A * B + C of codes as integers, modulo the width of D: the matrices of a plain reference.
struct Matrices {
  explicit Matrices(const Instruction& of)
      : i(of), a(static_cast<std::size_t>(64 * of.kept())), c(64 * 8), words(64) {}

  std::uint64_t dot(int row, int column) const {
    std::uint64_t sum = c.at(static_cast<std::size_t>(row * 8 + column));
    for (int j = 0; j < i.kept(); ++j)
      sum +=
          a.at(static_cast<std::size_t>(row * i.kept() + j)) *
          load_code(b.data() + (column * i.k + k_of(i, words[static_cast<std::size_t>(row)], j)) *
                                   info(i.b).bytes,
                    info(i.b).bytes);
    return sum & ((1ULL << (8 * info(i.d).bytes)) - 1);
  }

  const Instruction& i;
  std::vector<std::uint64_t> a, c;
  Bytes b;
  std::vector<std::vector<int>> words;
};

Matrices plain(const Instruction& i, const Operands& operands, int tile) {
  Matrices plain(i);
  const TileBytes bytes = tile_bytes(i);
  const auto at = static_cast<std::size_t>(tile);
  for (std::size_t j = 0; j < plain.a.size(); ++j)
    plain.a[j] = load_code(operands.a.data() + at * bytes.a + j * (bytes.a / plain.a.size()),
                           info(i.a).bytes);
  for (std::size_t j = 0; j < plain.c.size(); ++j)
    plain.c[j] = load_code(operands.c.data() + at * bytes.c + j * (bytes.c / plain.c.size()),
                           info(i.c).bytes);
  const auto first = operands.b.begin() + static_cast<std::ptrdiff_t>(at * bytes.b);
  plain.b.assign(first, first + static_cast<std::ptrdiff_t>(bytes.b));
  for (std::size_t row = 0; row < 64; ++row)
    for (int g = 0; g < i.groups(); ++g)
      plain.words[row].push_back(
          operands.metadata[at * bytes.metadata + row * static_cast<std::size_t>(i.groups()) +
                            static_cast<std::size_t>(g)]);
  return plain;
}

/// What the registers of the 128 threads hold, gathered as the kernel gathers them, read by CuTe.
Matrices from_registers(const Instruction& i, const Tiles& tiles, int tile) {
  Matrices read(i);
  std::vector<std::vector<int>> words(64, std::vector<int>(static_cast<std::size_t>(i.groups())));
  const ThreadLayout a = a_layout(i.k), c = c_layout(), e = e_layout(i.k);
  const int expand = i.k / i.kept();
  for (int t = 0; t < 128; ++t) {
    const Tiles rows = warp_rows(i, tiles, tile, t / 32);
    std::vector<std::uint32_t> left, sums;
    for (int r = 0; r < a_registers(i); ++r)
      left.push_back(static_cast<std::uint32_t>(gather_a(i, rows.a, t % 32, r)));
    for (int r = 0; r < c_registers(i, i.c); ++r)
      sums.push_back(static_cast<std::uint32_t>(gather_c(i, rows.c, t % 32, r)));
    REQUIRE(left.size() == 4);
    REQUIRE(sums.size() == (i.c == Element::f16 ? 2U : 4U));
    for (int v = 0; v < i.k / 2; v += expand) {
      const int at = a(t, v);
      read.a.at(static_cast<std::size_t>(at % 64 * i.kept() + at / 64 / expand)) =
          code_at(left, v / expand, info(i.a).bits);
    }
    for (int v = 0; v < 4; ++v) {
      const int at = c(t, v);
      read.c.at(static_cast<std::size_t>(at % 64 * 8 + at / 64)) = code_at(sums, v, info(i.c).bits);
    }
    // Selector 0: of 16 bits and tf32 threads 0 and 1 of each four.
    if (i.sparsity == Sparsity::dense || (info(i.a).bits >= 16 && t % 4 >= 2)) continue;
    const std::uint32_t metadata = gather_metadata(i, rows.metadata, t % 32);
    const int values = info(i.a).bits == 32 ? 16 : 32;
    for (int v = 0; v < values; v += i.group()) {
      const int at = e(t, v);
      words.at(static_cast<std::size_t>(at % 64))
          .at(static_cast<std::size_t>(at / 64 / i.group())) =
          static_cast<int>(metadata >> (v * 32 / values) & 15);
    }
  }
  read.words = words;
  return read;
}

TEST_CASE("the fields of a wgmma descriptor stand where PTX puts them", "[fast]") {
  // 0x400 / 16 = 0x40; 128 / 16 = 8 both ways.
  CHECK(wgmma_descriptor(0x400, {8, 32}) == 0x0000'0008'0008'0040ULL);
  CHECK(wgmma_descriptor(0x400, {8, 64}) == 0x0000'0008'0008'0040ULL);
  // The tf32 example of PTX ISA: LBO 256 is encoded as 16, SBO 128 as 8.
  CHECK(wgmma_descriptor(0, {16, 64}) == 0x0000'0008'0010'0000ULL);
  // The last 16 bytes of the 18 bits; bit 18 is not taken.
  CHECK(wgmma_descriptor(0x3FFF0, {8, 32}) == 0x0000'0008'0008'3FFFULL);
  CHECK(wgmma_descriptor(0x40010, {8, 32}) == 0x0000'0008'0008'0001ULL);
}

TEST_CASE("the rows of wgmma are dense and sparse and have eight columns", "[fast]") {
  int sparse = 0;
  for (const Instruction& i : wgmma_rows()) {
    CAPTURE(name(i));
    CHECK(i.m == 64);
    CHECK(i.n == 8);
    CHECK(shared_b(i).row_bytes == (i.kind == Kind::wgmma ? 32 : 64));
    sparse += i.kind == Kind::wgmmasp ? 1 : 0;
  }
  CHECK(sparse == 20);
  CHECK(wgmma_rows().size() == 40);
}

TEST_CASE("the descriptor leads to every code of B", "[fast]") {
  std::mt19937 random(1);
  for (const Instruction& i : wgmma_rows()) {
    CAPTURE(name(i));
    const SharedTile tile = shared_b(i);
    const Bytes b = random_bytes(random, tile_bytes(i).b);
    const Shared shared(random, tile, b.data());
    CHECK(read_b(shared, i.n, i.k, info(i.b).bytes) == b);
    CHECK(read_b(shared, i.n, i.k, info(i.b).bytes, true) == b);
  }
}

TEST_CASE("with more columns only LBO along k leads to B", "[fast]") {
  std::mt19937 random(2);
  for (const int n : {16, 64}) {
    const Bytes b = random_bytes(random, static_cast<std::size_t>(n) * 32);
    const Shared shared(random, {n, 32}, b.data());
    CHECK(read_b(shared, n, 16, 2) == b);
    CHECK(read_b(shared, n, 8, 4) == b);
    CHECK(read_b(shared, n, 16, 2, true) != b);
  }
}

TEST_CASE("the registers of a warpgroup hold A, C and the metadata as CuTe reads them", "[fast]") {
  std::mt19937 random(3);
  for (const Instruction& i : wgmma_rows()) {
    CAPTURE(name(i));
    Operands operands(random, i);
    for (int tile = 0; tile < kTileCount; ++tile) {
      const Matrices expected = plain(i, operands, tile);
      const Matrices read = from_registers(i, operands.tiles(), tile);
      CHECK(read.a == expected.a);
      CHECK(read.c == expected.c);
      CHECK(read.words == expected.words);
    }
  }
}

TEST_CASE("a warpgroup that multiplies codes as integers gives the plain product", "[fast]") {
  std::mt19937 random(4);
  for (const Instruction& i : wgmma_rows()) {
    CAPTURE(name(i));
    Operands operands(random, i);
    const ThreadLayout d = c_layout();
    for (int tile = 0; tile < kTileCount; ++tile) {
      Matrices unit = from_registers(i, operands.tiles(), tile);
      const Shared shared(random, shared_b(i), warp_rows(i, operands.tiles(), tile, 0).b);
      unit.b = read_b(shared, i.n, i.k, info(i.b).bytes);
      for (int t = 0; t < 128; ++t) {
        const Tiles rows = warp_rows(i, operands.tiles(), tile, t / 32);
        const int bits = info(i.d).bits;
        for (int r = 0; r < c_registers(i, i.d); ++r) {
          std::uint64_t word = 0;
          for (int s = 0; s < 32 / bits; ++s) {
            const int at = d(t, r * (32 / bits) + s);
            word |= unit.dot(at % 64, at / 64) << (s * bits);
          }
          scatter_d(i, rows.d, t % 32, r, word);
        }
      }
    }
    const auto bytes = static_cast<std::size_t>(info(i.d).bytes);
    for (int tile = 0; tile < kTileCount; ++tile) {
      const Matrices expected = plain(i, operands, tile);
      int wrong = 0;
      for (int at = 0; at < 64 * 8; ++at)
        wrong += load_code(operands.d.data() + static_cast<std::size_t>(tile * 512 + at) * bytes,
                           info(i.d).bytes) != expected.dot(at / 8, at % 8);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::wgmma_descriptor_test
