// The data set mnist:DIR: four IDX files, compressed or not.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/data/idx.hpp"
#include "emu/net/data/sources.hpp"

namespace numemu::net {
namespace {

// Mean and deviation of all training pixels on [0, 1], as in the PyTorch MNIST example.
constexpr double kMean = 0.1307, kDeviation = 0.3081;

}  // namespace

Dataset load_mnist(const std::string& folder) {
  Images train = read_idx(folder, "train");
  Images test = read_idx(folder, "t10k");
  return Dataset("mnist", 10, std::move(train), std::move(test), {kMean}, {kDeviation});
}

}  // namespace numemu::net
