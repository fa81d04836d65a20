// The generator against the known answers of Random123 and against the project's own.

#include "emu/oracle/recording/data.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::oracle::recording::philox_test {
namespace {

bool equal(const PhiloxBlock& got, const numemu::PhiloxBlock& expected) {
  for (std::size_t w = 0; w < 4; ++w)
    if (got.word[w] != expected[w]) return false;
  return true;
}

// Random123, tests/kat_vectors, philox4x32 10.
TEST_CASE("Philox gives the published answers", "[fast][gpu]") {
  CHECK(equal(philox(0, {{0, 0, 0, 0}}), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  CHECK(equal(philox(~std::uint64_t{0}, {{ones, ones, ones, ones}}),
              {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  CHECK(equal(philox(0x299f31d0a4093822, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}),
              {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST_CASE("Philox agrees with the project's generator on 100000 blocks", "[fast][gpu]") {
  int different = 0;
  numemu::PhiloxBlock x = {1, 2, 3, 4};
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(x[1]) << 32 | x[3];
    const numemu::PhiloxBlock expected = numemu::philox(seed, x);
    if (!equal(philox(seed, {{x[0], x[1], x[2], x[3]}}), expected)) ++different;
    x = expected;
  }
  CHECK(different == 0);
}

TEST_CASE("words are those of the project's random source", "[fast][gpu]") {
  CHECK(kVectorStream == static_cast<std::uint32_t>(Stream::vectors));
  const std::uint64_t far = (std::uint64_t{1} << 48) - 100;  // the counter has 48 bits of blocks
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x123456789abcdef0}}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{4093}, far, 4 * far + 7}) {
      for (const int draw : {0, 2, 9}) {
        const RandomSource source{seed, Stream::vectors, 77, static_cast<std::uint16_t>(draw)};
        Words words(seed, 77, draw, first);
        int different = 0;
        for (std::uint64_t i = first; i < first + 200; ++i)
          if (words.next() != source.bits(i, 32)) ++different;
        INFO("seed " << seed << " first " << first << " draw " << draw);
        CHECK(different == 0);
      }
    }
  }
}

}  // namespace
}  // namespace numemu::oracle::recording::philox_test
