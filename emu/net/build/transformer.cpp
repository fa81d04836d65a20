// A decoder of pre-normalised attention blocks.
// Cold: a negligible share of any run (docs/build.md).
#include <cmath>

#include "emu/net/build/builder.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/masks.hpp"
#include "emu/net/ops/matmul.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/softmax.hpp"

namespace numemu::net {
namespace {

// What each position gathers from itself and those before it.
void attention(Builder& net, const std::string& name, std::int64_t heads, std::int64_t width) {
  const int from = net.value();
  const int query = net.linear(name + "query", width).value();
  const int key = net.at(from).linear(name + "key", width, false).value();
  const int value = net.at(from).linear(name + "value", width).value();
  const auto alpha = static_cast<float>(1 / std::sqrt(static_cast<double>(width / heads)));
  net.node(
      name + "scores",
      std::make_unique<MatMul>(MatMulOptions{.heads = heads, .transpose_b = true, .alpha = alpha}),
      {query, key});
  net.node(name + "mask", std::make_unique<CausalMask>());
  net.node(name + "softmax", std::make_unique<Softmax>());
  net.node(name + "gathered", std::make_unique<MatMul>(MatMulOptions{.heads = heads}),
           {net.value(), value});
  net.linear(name + "output", width);
}

void transformer_block(Builder& net, const std::string& name, std::int64_t heads,
                       std::int64_t width) {
  int residual = net.value();
  net.layer_norm(name + "norm1");
  attention(net, name + "attention.", heads, width);
  net.node(name + "add1", std::make_unique<Binary>("add"), {residual, net.value()});
  residual = net.value();
  net.layer_norm(name + "norm2").linear(name + "mlp.fc1", 4 * width);
  net.node(name + "mlp.gelu", std::make_unique<Pointwise>("gelu")).linear(name + "mlp.fc2", width);
  net.node(name + "add2", std::make_unique<Binary>("add"), {residual, net.value()});
}

}  // namespace

void transformer(Builder& net, std::int64_t blocks, std::int64_t heads, std::int64_t width) {
  net.embedding("embedding", width).positions("positions");
  for (std::int64_t b = 1; b <= blocks; ++b)
    transformer_block(net, "block" + std::to_string(b) + ".", heads, width);
  net.layer_norm("norm").classifier("head");
}

}  // namespace numemu::net
