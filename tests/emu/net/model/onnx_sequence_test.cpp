// Networks of sequences: exported and read back they are the same.
#include "emu/net/model/onnx_sequence.hpp"

#include <cstring>

#include "emu/net/build/builder.hpp"
#include "emu/net/model/onnx_export.hpp"
#include "emu/net/model/onnx_import.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/matmul.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kLength = 8, kWords = 20;

ImportedModel read_back(const std::string& file) {
  Bytes bytes(static_cast<std::int64_t>(file.size()));
  std::memcpy(bytes.data(), file.data(), file.size());
  return import_onnx(parse_onnx("m.onnx", std::move(bytes)), {});
}

Tensor numbers(const Shape& shape, bool whole) {
  Tensor x(shape);
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    x.data[i] = whole ? static_cast<float>((i * 7) % static_cast<std::size_t>(kWords))
                      : static_cast<float>((i * 7919) % 513) / 256 - 1;
  }
  return x;
}

void check_same(const Graph& graph, const Tensor& x) {
  const ImportedModel back = read_back(export_onnx(graph, {}));
  Numerics numerics;
  CHECK(forward(back.graph, x, numerics).data == forward(graph, x, numerics).data);
}

}  // namespace

TEST_CASE("a transformer is the same after export and import", "[fast]") {
  Graph graph = build_net("char-transformer", {kLength}, kWords);
  initialize(graph, 3);
  check_same(graph, numbers({3, kLength}, true));
}

TEST_CASE("plain matrices, with a factor and turned, are the same after export", "[fast]") {
  for (const bool turned : {false, true}) {
    for (const float alpha : {1.0f, 0.3f}) {
      Builder net("m", {6, 6}, 10);
      const int x = net.value();
      net.node("product",
               std::make_unique<MatMul>(MatMulOptions{.transpose_b = turned, .alpha = alpha}),
               {x, x});
      const Graph graph = net.take();
      check_same(graph, numbers({2, 6, 6}, false));
    }
  }
}

TEST_CASE("operators of sequences are told from others", "[fast]") {
  const Graph text = build_net("char-transformer", {kLength}, kWords);
  int sequence = 0;
  for (const Node& node : text.nodes) sequence += is_sequence_operator(*node.op);
  // Tables 2, norms 2 a block and one, products 2, masks, softmax and GELU of four blocks.
  CHECK(sequence == 2 + 9 + 4 * (2 + 1 + 1 + 1));
  for (const Node& node : build_net("resnet20", {16, 16, 3}, 10).nodes)
    CHECK_FALSE(is_sequence_operator(*node.op));
}

}  // namespace numemu::net
