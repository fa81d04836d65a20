// Residual networks for CIFAR-10, with the layer names stageS.blockB.LAYER.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/build/builder.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/views.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kStages = 3, kChannels = 16;

// The value that is added to the block's result: `from`, under its shape.
int shortcut(Builder& net, const std::string& name, int from, std::int64_t channels,
             std::int64_t stride) {
  const std::int64_t missing = channels - net.at(from).shape()[3];
  if (stride != 1) {
    net.node(name + "shortcut", std::make_unique<Slice>(std::vector<SliceRange>{
                                    {.axis = 1, .step = stride}, {.axis = 2, .step = stride}}));
  }
  if (missing != 0) {
    const std::int64_t half = missing / 2;
    net.node(name + "pad", std::make_unique<Pad>(std::vector<std::int64_t>{0, 0, 0, half},
                                                 std::vector<std::int64_t>{0, 0, 0, half}));
  }
  return net.value();
}

void residual_block(Builder& net, const std::string& name, std::int64_t channels,
                    std::int64_t stride) {
  const int from = net.value();
  net.conv3x3(name + "conv1", channels, stride).batch_norm(name + "bn1").relu(name + "relu1");
  net.conv3x3(name + "conv2", channels).batch_norm(name + "bn2");
  const int result = net.value();
  const int beside = shortcut(net, name, from, channels, stride);
  net.node(name + "add", std::make_unique<Binary>("add"), {result, beside}).relu(name + "relu2");
}

}  // namespace

void resnet(Builder& net, std::int64_t blocks) {
  net.conv3x3("conv1", kChannels).batch_norm("bn1").relu("relu1");
  for (std::int64_t stage = 1; stage <= kStages; ++stage) {
    for (std::int64_t b = 1; b <= blocks; ++b) {
      const std::string name = "stage" + std::to_string(stage) + ".block" + std::to_string(b) + ".";
      residual_block(net, name, kChannels << (stage - 1), stage > 1 && b == 1 ? 2 : 1);
    }
  }
  net.global_pool("pool").flatten("flatten").classifier("fc");
}

}  // namespace numemu::net
