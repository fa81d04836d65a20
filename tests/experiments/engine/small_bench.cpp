// Its images and weights.
#include "tests/experiments/engine/small_bench.hpp"

#include "emu/net/nets.hpp"
#include "formats/random.hpp"

namespace numemu::experiments::testing {

net::Images small_images(std::int64_t count, std::uint32_t tensor) {
  net::Images images{count, 8, 8, 1, {}, {}};
  RandomSource random;
  random.stream = Stream::data;
  random.tensor = tensor;
  for (std::int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(random.bits(70 * i, 8) % 10);
    images.labels.push_back(static_cast<std::uint8_t>(label));
    for (int p = 0; p < 64; ++p) {
      const int lit = p / 6 == label ? 120 : 0;
      images.pixels.push_back(static_cast<std::uint8_t>(lit + random.bits(70 * i + p + 1, 8) / 2));
    }
  }
  return images;
}

net::Dataset small_dataset() {
  return {"small", 10, small_images(5600, 1), small_images(400, 2), {0.4f}, {0.2f}};
}

TrainedNet small_net() {
  TrainedNet trained{net::build_net("mlp", {8, 8, 1}, 10), "", "0123456789abcdef"};
  net::initialize(trained.graph, 3);
  return trained;
}

}  // namespace numemu::experiments::testing
