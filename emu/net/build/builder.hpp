// Builds a graph layer by layer: each layer takes its input size from the value it reads.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "emu/net/ops/conv.hpp"

namespace numemu::net {

/// Every layer reads the current value and becomes it. Branches: remember value(), go back with
/// at(), join with add() or concat().
class Builder {
 public:
  Builder(std::string_view name, const Shape& input_shape, std::int64_t classes);

  Builder& conv(std::string name, Conv2dOptions options);
  /// 3 x 3 and 1 x 1 kernels that keep the extents at stride 1, without bias; batch normalisation
  /// follows.
  Builder& conv3x3(std::string name, std::int64_t channels, std::int64_t stride = 1);
  Builder& conv1x1(std::string name, std::int64_t channels);
  /// 3 x 3, every channel by itself.
  Builder& depthwise(std::string name, std::int64_t stride = 1);
  Builder& batch_norm(std::string name);
  Builder& linear(std::string name, std::int64_t out, bool bias = true);
  /// Linear to one logit per class.
  Builder& classifier(std::string name) { return linear(std::move(name), classes_); }
  Builder& relu(std::string name);
  Builder& relu6(std::string name);
  Builder& hard_tanh(std::string name);
  Builder& flatten(std::string name);
  Builder& max_pool(std::string name, std::int64_t size);
  Builder& global_pool(std::string name);
  Builder& layer_norm(std::string name);
  /// A row of `width` per class: the characters of a text.
  Builder& embedding(std::string name, std::int64_t width);
  Builder& positions(std::string name);
  Builder& lstm(std::string name, std::int64_t hidden);

  /// Any operator on the current value, or on those named.
  Builder& node(std::string name, std::unique_ptr<Op> op, std::vector<int> reads = {Graph::kLast});
  int value() const { return value_; }
  Builder& at(int value);
  const Shape& shape() const { return shapes_[value_]; }  ///< of the current value, batch 1
  std::int64_t classes() const { return classes_; }

  /// Throws Error unless the input is [context], as of a text.
  void need_text() const;
  /// Throws Error naming the network for an input that is not as `expected`.
  [[noreturn]] void refuse(const std::string& expected) const;
  /// The graph; its output is the value added last.
  Graph take() { return std::move(graph_); }

 private:
  Graph graph_;
  std::vector<Shape> shapes_;  ///< of every value
  int value_ = 0;
  std::int64_t classes_;
};

// The networks of nets.def that branch: residual, separable, attention, feature interaction.

/// ResNet for CIFAR-10 of 6 `blocks` + 2 layers (He et al. 2016, 4.2): three stages of 16, 32 and
/// 64 channels. Shortcuts to more channels take every second pixel and pad with zero channels on
/// both sides alike (option A): they have no weights.
void resnet(Builder&, std::int64_t blocks);

/// MobileNet (Howard et al. 2017) cut to small images: a convolution, six depthwise separable
/// blocks of 32 to 128 channels, a classifier on their means.
void mobilenet(Builder&);

/// GPT (Radford et al. 2019): characters and positions embedded in `width`, `blocks` of causal
/// attention and a GELU MLP of 4 x width, each behind a layer normalisation and beside a residual
/// path, then a normalisation and one logit per character. Keys have no bias: softmax cancels it.
void transformer(Builder&, std::int64_t blocks, std::int64_t heads, std::int64_t width);

/// DLRM (Naumov et al. 2019) for clicks: an MLP takes the dense features to `width`, every
/// category has a row of `width`, their dot products in pairs and the dense vector go to an MLP.
void dlrm(Builder&, std::int64_t width);

}  // namespace numemu::net
