// Known answers of Philox and of the layout of pieces, the same as in docs/random.md.
#include "formats/random.hpp"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::random_test {
namespace {

struct PhiloxAnswer {
  std::uint64_t seed;
  PhiloxBlock counter, block;
};

// kat_vectors of Random123 1.14.
constexpr PhiloxAnswer kPhiloxAnswers[] = {
    {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {0xffffffffffffffff,
     {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0a4093822,
     {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

/// The bits of one element for each size of a piece.
struct PieceAnswer {
  RandomSource source;
  std::uint64_t element;
  std::uint32_t bits8, bits16, bits32;
};

// Computed by an independent program from the text of the contract.
constexpr PieceAnswer kPieceAnswers[] = {
    {{0, Stream::quantize, 0, 0}, 0, 0xe5, 0x73e5, 0x2dce73e5},
    {{1, Stream::quantize, 0, 0}, 5, 0x74, 0x4884, 0xa9634a04},
    {{0x123456789abcdef0, Stream::accumulate, 0xdeadbeef, 7}, 1000000007, 0xfa, 0xceed, 0x70ea90d3},
    {{0x123456789abcdef0, Stream::vectors, 0xdeadbeef, 65535},
     (std::uint64_t{1} << 40) + 21,
     0xcf,
     0xa993,
     0xae0ffc45},
};

TEST_CASE("random: Philox4x32-10 gives the published known answers", "[fast]") {
  for (const PhiloxAnswer& a : kPhiloxAnswers) CHECK(philox(a.seed, a.counter) == a.block);
}

TEST_CASE("random: a block that is kept serves its own source and counter only", "[fast]") {
  // Neighbours that differ in one coordinate, read in turn, against blocks computed for each.
  const RandomSource first{9, Stream::data, 3, 1};
  std::vector<RandomSource> sources(6, first);
  sources[1].seed = 9 | std::uint64_t{1} << 32;
  sources[2].stream = Stream::quantize;
  sources[3].tensor = 4;
  sources[4].draw = 2;
  for (const std::uint64_t i : {0, 1, 3, 4, 7, 8, 15, 16, 5, 0}) {
    for (const RandomSource& source : sources) {
      for (const std::uint64_t element : {i, i + (std::uint64_t{1} << 34)}) {
        const std::uint64_t block = element / 4;
        const PhiloxBlock words =
            philox(source.seed, {static_cast<std::uint32_t>(block),
                                 static_cast<std::uint32_t>(block >> 32) |
                                     static_cast<std::uint32_t>(source.draw) << 16,
                                 source.tensor, static_cast<std::uint32_t>(source.stream)});
        CHECK(source.bits(element, 32) == words[element % 4]);
        CHECK(source.bits(element, 32) == words[element % 4]);
      }
    }
  }
}

TEST_CASE("random: known answers of each piece size", "[fast]") {
  for (const PieceAnswer& a : kPieceAnswers) {
    INFO("element " << a.element);
    CHECK(a.source.bits(a.element, 8) == a.bits8);
    CHECK(a.source.bits(a.element, 16) == a.bits16);
    CHECK(a.source.bits(a.element, 32) == a.bits32);
    for (int n = 1; n <= 32; ++n) {  // fewer bits are the top of the same piece
      INFO(n << " bits");
      const std::uint32_t piece = n <= 8 ? a.bits8 : n <= 16 ? a.bits16 : a.bits32;
      CHECK(a.source.bits(a.element, n) == piece >> ((n <= 8 ? 8 : n <= 16 ? 16 : 32) - n));
    }
  }
}

// How many lines of the page begin like this; with the newline at its end, how many are this.
int lines_that_begin(const std::string& page, const std::string& begin) {
  int count = 0;
  for (auto at = page.find("\n" + begin); at != std::string::npos;
       at = page.find("\n" + begin, at + 1))
    ++count;
  return count;
}

TEST_CASE("random: docs/random.md prints these answers, no others, and the streams", "[fast]") {
  const std::string page = test::read_file(NUMEMU_SOURCE "/docs/random.md");
  const auto words = [](const PhiloxBlock& b) {
    return fmt::format("{:08x} {:08x} {:08x} {:08x}", b[0], b[1], b[2], b[3]);
  };
  for (const PhiloxAnswer& a : kPhiloxAnswers) {
    const std::string line =
        fmt::format("| `{:08x} {:08x}` | `{}` | `{}` |", static_cast<std::uint32_t>(a.seed),
                    a.seed >> 32, words(a.counter), words(a.block));
    INFO(line);
    CHECK(lines_that_begin(page, line + "\n") == 1);
  }
  CHECK(lines_that_begin(page, "| `") == static_cast<int>(std::size(kPhiloxAnswers)));
  for (const PieceAnswer& a : kPieceAnswers) {
    const std::string line =
        fmt::format("| {:#x} | {} | {:#x} | {} | {} | {:#04x} | {:#06x} | {:#010x} |",
                    a.source.seed, static_cast<std::uint32_t>(a.source.stream), a.source.tensor,
                    a.source.draw, a.element, a.bits8, a.bits16, a.bits32);
    INFO(line);
    CHECK(lines_that_begin(page, line + "\n") == 1);
  }
  CHECK(lines_that_begin(page, "| 0x") == static_cast<int>(std::size(kPieceAnswers)));
  const std::string streams[] = {
#define NUMEMU_STREAM(name, number, what) fmt::format("| {} | {} | {} |", number, #name, what),
#include "formats/streams.def"
#undef NUMEMU_STREAM
  };
  for (const std::string& line : streams) {
    INFO(line);
    CHECK(lines_that_begin(page, line + "\n") == 1);
  }
}

TEST_CASE("random: a block is cut into pieces in little-endian order and every coordinate matters",
          "[fast]") {
  const RandomSource source{42, Stream::init, 9, 3};
  const PhiloxBlock block = philox(42, {5, std::uint32_t{3} << 16, 9, 4});
  for (std::uint64_t j = 0; j < 16; ++j)
    CHECK(source.bits(5 * 16 + j, 8) == (block[j / 4] >> (8 * (j % 4)) & 0xff));
  for (std::uint64_t j = 0; j < 8; ++j)
    CHECK(source.bits(5 * 8 + j, 16) == (block[j / 2] >> (16 * (j % 2)) & 0xffff));
  for (std::uint64_t j = 0; j < 4; ++j) CHECK(source.bits(5 * 4 + j, 32) == block[j]);
  const std::set<std::uint32_t> words = {source.bits(0, 32),
                                         RandomSource{43, Stream::init, 9, 3}.bits(0, 32),
                                         RandomSource{42, Stream::mask, 9, 3}.bits(0, 32),
                                         RandomSource{42, Stream::init, 8, 3}.bits(0, 32),
                                         RandomSource{42, Stream::init, 9, 2}.bits(0, 32),
                                         source.bits(4, 32)};
  CHECK(words.size() == 6);
  CHECK(source.uniform(0) == source.bits(0, 32) * 0x1p-32);
}

}  // namespace
}  // namespace numemu::random_test
