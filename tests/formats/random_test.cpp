// Known answers of Philox and of the layout of pieces, the same as in docs/formats.md.
#include "formats/random.hpp"

#include <set>

#include "tests/catch.hpp"

namespace numemu {
namespace {

TEST_CASE("random: Philox4x32-10 gives the published known answers", "[fast]") {
  // kat_vectors of Random123 1.14.
  CHECK(philox(0, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(0xffffffffffffffff, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// Computed by an independent program from the text of the contract.
TEST_CASE("random: three known answers of each piece size", "[fast]") {
  const RandomSource zero{0, Stream::quantize, 0, 0}, one{1, Stream::quantize, 0, 0};
  const RandomSource far{0x123456789abcdef0, Stream::accumulate, 0xdeadbeef, 7};
  const RandomSource last{0x123456789abcdef0, Stream::vectors, 0xdeadbeef, 65535};
  constexpr std::uint64_t kFar = 1000000007, kLast = (std::uint64_t{1} << 40) + 21;

  CHECK(zero.bits(0, 8) == 0xe5);
  CHECK(one.bits(5, 8) == 0x74);
  CHECK(far.bits(kFar, 8) == 0xfa);
  CHECK(last.bits(kLast, 8) == 0xcf);
  CHECK(zero.bits(0, 5) == 0x1c);

  CHECK(zero.bits(0, 16) == 0x73e5);
  CHECK(one.bits(5, 16) == 0x4884);
  CHECK(far.bits(kFar, 16) == 0xceed);
  CHECK(last.bits(kLast, 16) == 0xa993);
  CHECK(far.bits(kFar, 11) == 0x677);

  CHECK(zero.bits(0, 32) == 0x2dce73e5);
  CHECK(one.bits(5, 32) == 0xa9634a04);
  CHECK(far.bits(kFar, 32) == 0x70ea90d3);
  CHECK(last.bits(kLast, 32) == 0xae0ffc45);
  CHECK(last.bits(kLast, 24) == 0xae0ffc);
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
}  // namespace numemu
