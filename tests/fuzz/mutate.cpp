#include "tests/fuzz/mutate.hpp"

#include <algorithm>

namespace numemu::fuzz {
namespace {

/// Numbers on which sizes and signs go wrong.
constexpr std::uint64_t kEdges[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0xffff,
                                    0x7fff'ffff,
                                    0x8000'0000,
                                    0xffff'ffff,
                                    0x7fff'ffff'ffff'ffff,
                                    0x8000'0000'0000'0000,
                                    0xffff'ffff'ffff'ffff};

}  // namespace

void mutate_bytes(std::string& bytes, const std::string& other, Random& random) {
  const std::size_t at = random.below(bytes.size() + 1);
  const std::size_t length = std::min(random.below(32) + 1, bytes.size() - at);
  switch (random.below(8)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random.word());
      break;
    case 2: {  // a number of 1, 2, 4 or 8 bytes, either end first
      std::uint64_t edge = random.of(kEdges);
      const std::size_t width = std::size_t{1} << random.below(4);
      if (random.below(2) == 1) edge = __builtin_bswap64(edge) >> (64 - 8 * width);
      for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<char>(edge >> 8 * i);
      break;
    }
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(random.below(bytes.size() + 1), bytes.substr(at, length));
      break;
    case 5: {  // one part very often
      const std::string part = bytes.substr(at, length);
      for (std::size_t i = random.below(512); i > 0 && bytes.size() < kLongest; --i)
        bytes.insert(at, part);
      break;
    }
    case 6:
      bytes.resize(at);
      break;
    default:
      bytes = bytes.substr(0, at) + other.substr(random.below(other.size() + 1));
      break;
  }
  if (bytes.size() > kLongest) bytes.resize(kLongest);
}

}  // namespace numemu::fuzz
