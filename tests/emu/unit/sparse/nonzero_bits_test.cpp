// Every length around the borders of vectors and words, on every instruction set of this machine.
#include "emu/unit/sparse/nonzero_bits.hpp"

#include <hwy/targets.h>

#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace nonzero_bits_test {

using namespace numemu;
using namespace numemu::unit;

namespace {

template <class T>
void check(const Format& format) {
  test::Dice dice(7);
  const ZeroCodes zeros = zero_codes(format);
  for (std::int64_t count = 0; count <= 200; ++count) {
    std::int64_t wrong_bits = 0, wrong_parts = 0;
    std::vector<T> codes(count);
    for (T& code : codes) code = dice.below(3) == 0 ? T(1) : T(0);
    std::vector<std::uint64_t> words(bit_words(count), ~std::uint64_t{0});
    nonzero_bits(zeros, codes.data(), count, words.data());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(words.size()) * 64; ++i)
      wrong_bits += (words[i / 64] >> (i % 64) & 1) != (i < count && codes[i] != T(0));
    for (std::int64_t first = 0; first + 16 <= count; ++first)
      for (int size = 1; size <= 16; ++size) {
        std::uint32_t expected = 0;
        for (int i = 0; i < size; ++i) expected |= (codes[first + i] != T(0) ? 1u : 0u) << i;
        wrong_parts += bits_at(words.data(), first, size) != expected;
      }
    INFO(format.name << ", " << count << " codes");
    REQUIRE(wrong_bits == 0);
    REQUIRE(wrong_parts == 0);
  }
}

}  // namespace

TEST_CASE("sparse bits: every length, container and instruction set", "[fast]") {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    check<std::uint8_t>(find_format("float8_e4m3fn"));
    check<std::uint16_t>(find_format("float16"));
    check<float>(find_format("float32"));
    // First, count and never all take part: fnuz and ftz.
    const ZeroCodes zeros = zero_codes(find_format("e4m3+fnuz+ftz"));
    std::vector<std::uint8_t> codes(256);
    for (int i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
    std::vector<std::uint64_t> words(bit_words(256));
    nonzero_bits(zeros, codes.data(), 256, words.data());
    for (int i = 0; i < 256; ++i) REQUIRE((words[i / 64] >> (i % 64) & 1) == !zeros.zero(codes[i]));
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace nonzero_bits_test
