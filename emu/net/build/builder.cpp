// One line per kind of layer; the shapes come from the operators themselves.
#include "emu/net/build/builder.hpp"

#include <utility>

#include "emu/net/ops/batch_norm.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/recurrent.hpp"
#include "emu/net/ops/row_norm.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"

namespace numemu::net {

Builder::Builder(std::string_view name, const Shape& input_shape, std::int64_t classes)
    : classes_(classes) {
  graph_.name = name;
  graph_.inputs = {{"input", input_shape}};
  shapes_.push_back(input_shape);
  shapes_[0].insert(shapes_[0].begin(), 1);
}

Builder& Builder::node(std::string name, std::unique_ptr<Op> op, std::vector<int> reads) {
  std::vector<Shape> shapes;
  for (int& v : reads) {
    if (v == Graph::kLast) v = value_;
    shapes.push_back(shapes_.at(v));
  }
  shapes_.push_back(op->output_shape(shapes));
  value_ = graph_.add(std::move(name), std::move(op), std::move(reads));
  return *this;
}

Builder& Builder::at(int value) {
  value_ = value;
  return *this;
}

void Builder::refuse(const std::string& expected) const {
  throw Error("network " + graph_.name + ": expected " + expected + ", got " +
              to_string(graph_.inputs[0].shape));
}

void Builder::need_text() const {
  if (graph_.inputs[0].shape.size() != 1) refuse("windows [context] of a text");
}

Builder& Builder::conv(std::string name, Conv2dOptions options) {
  if (shape().size() != 4)
    throw Error("network " + graph_.name + ": " + name + " needs images, got " +
                to_string(shape()));
  options.in_channels = shape()[3];
  return node(std::move(name), std::make_unique<Conv2d>(options));
}

Builder& Builder::conv3x3(std::string name, std::int64_t channels, std::int64_t stride) {
  return conv(std::move(name), {.out_channels = channels,
                                .kernel_height = 3,
                                .kernel_width = 3,
                                .stride = stride,
                                .pad = 1,
                                .bias = false});
}

Builder& Builder::conv1x1(std::string name, std::int64_t channels) {
  return conv(std::move(name), {.out_channels = channels, .bias = false});
}

Builder& Builder::depthwise(std::string name, std::int64_t stride) {
  const std::int64_t channels = shape().back();
  return conv(std::move(name), {.out_channels = channels,
                                .kernel_height = 3,
                                .kernel_width = 3,
                                .stride = stride,
                                .pad = 1,
                                .bias = false,
                                .groups = channels});
}

Builder& Builder::batch_norm(std::string name) {
  return node(std::move(name),
              std::make_unique<BatchNorm>(BatchNormOptions{.channels = shape().back()}));
}
Builder& Builder::linear(std::string name, std::int64_t out, bool bias) {
  return node(std::move(name), std::make_unique<Linear>(shape().back(), out, bias));
}
Builder& Builder::relu(std::string name) {
  return node(std::move(name), std::make_unique<Pointwise>("relu"));
}
Builder& Builder::relu6(std::string name) {
  return node(std::move(name), std::make_unique<Pointwise>("clip", PointwiseNumbers{0, 6}));
}
Builder& Builder::hard_tanh(std::string name) {
  return node(std::move(name), std::make_unique<Pointwise>("clip", PointwiseNumbers{-1, 1}));
}
Builder& Builder::flatten(std::string name) {
  return node(std::move(name), std::make_unique<Flatten>());
}
Builder& Builder::max_pool(std::string name, std::int64_t size) {
  return node(std::move(name), std::make_unique<MaxPool>(size));
}
Builder& Builder::global_pool(std::string name) {
  return node(std::move(name), std::make_unique<GlobalAveragePool>());
}
Builder& Builder::layer_norm(std::string name) {
  return node(std::move(name), std::make_unique<LayerNorm>(shape().back()));
}
Builder& Builder::embedding(std::string name, std::int64_t width) {
  need_text();
  return node(std::move(name), std::make_unique<Embedding>(classes_, width));
}
Builder& Builder::positions(std::string name) {
  return node(std::move(name), std::make_unique<PositionEmbedding>(shape()[1], shape()[2]));
}
Builder& Builder::lstm(std::string name, std::int64_t hidden) {
  return node(std::move(name), std::make_unique<Lstm>(shape().back(), hidden));
}

}  // namespace numemu::net
