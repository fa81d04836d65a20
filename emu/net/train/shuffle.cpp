// Fisher-Yates from counter-based draws: the stream is `shuffle`, the tensor word names the epoch.
#include "emu/net/train/shuffle.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "formats/digest.hpp"
#include "formats/random.hpp"

namespace numemu::net {

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const RandomSource source{seed, Stream::shuffle,
                            tensor_word("data/order/" + std::to_string(epoch) + "/shuffle"), 0};
  for (std::uint64_t i = order.size(); i-- > 1;) {
    // A draw in [0, i]: the high word of 32 random bits times i + 1 (bias below (i + 1) / 2^32).
    const std::uint64_t j = (std::uint64_t{source.bits(i, 32)} * (i + 1)) >> 32;
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace numemu::net
