// Depthwise separable convolutions: one filter per channel, then a mixture of channels.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/build/builder.hpp"

namespace numemu::net {
namespace {

struct Separable {
  std::int64_t channels, stride;
};

constexpr Separable kBlocks[] = {{32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {128, 1}};

}  // namespace

void mobilenet(Builder& net) {
  net.conv3x3("conv1", 16).batch_norm("bn1").relu6("relu1");
  int number = 0;
  for (const auto& [channels, stride] : kBlocks) {
    const std::string name = "block" + std::to_string(++number) + ".";
    net.depthwise(name + "depthwise", stride).batch_norm(name + "bn1").relu6(name + "relu1");
    net.conv1x1(name + "pointwise", channels).batch_norm(name + "bn2").relu6(name + "relu2");
  }
  net.global_pool("pool").flatten("flatten").classifier("fc");
}

}  // namespace numemu::net
