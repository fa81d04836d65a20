// The vector Philox against RandomSource::bits(), element by element.
#include "formats/simd/philox.hpp"

#include <hwy/targets.h>

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"

namespace numemu::simd::philox_test {
namespace {

TEST_CASE("philox: vectors give the bits of the counter function", "[fast]") {
  const RandomSource source{
      .seed = 0x0123456789abcdef, .stream = Stream::mask, .tensor = 77, .draw = 5};
  constexpr std::int64_t kMost = 700;
  std::vector<std::uint32_t> words(kMost + 1);
  std::vector<std::uint8_t> bytes(kMost + 1);
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const int bits : {1, 4, 8, 9, 16, 17, 23, 32})
      for (const std::uint64_t first :
           {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1000}, (std::uint64_t{1} << 34) - 37,
            (std::uint64_t{1} << 36) - 37})  // blocks whose number passes 32 bits
        for (const std::int64_t n : {std::int64_t{1}, std::int64_t{37}, kMost}) {
          words[n] = 0xdeadbeef;
          fill_random(source, bits, first, n, words.data());
          INFO(hwy::TargetName(target) << " bits " << bits << " first " << first << " n " << n);
          CHECK(words[n] == 0xdeadbeef);
          std::int64_t different = 0;
          for (std::int64_t i = 0; i < n; ++i)
            different += words[i] != source.bits(first + static_cast<std::uint64_t>(i), bits);
          CHECK(different == 0);
          if (bits != 8) continue;
          bytes[n] = 0xef;
          fill_random_bytes(source, first, n, bytes.data());
          CHECK(bytes[n] == 0xef);
          CHECK(std::equal(bytes.begin(), bytes.begin() + n, words.begin()));
        }
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace numemu::simd::philox_test
