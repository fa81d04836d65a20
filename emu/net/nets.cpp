// Builds the networks of nets.def: each layer takes its input size from the value before it.
#include "emu/net/nets.hpp"

#include "emu/net/ops/conv2d.hpp"
#include "emu/net/ops/flatten.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/max_pool.hpp"
#include "emu/net/ops/relu.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

class Builder {
 public:
  Builder(std::string_view name, const Shape& input_shape, std::int64_t classes)
      : classes_(classes) {
    graph_.name = name;
    graph_.input_shape = input_shape;
    shape_ = input_shape;
    shape_.insert(shape_.begin(), 1);
  }

  Builder& conv(std::string name, Conv2dOptions options) {
    if (shape_.size() != 4)
      throw Error("network " + graph_.name + ": " + name + " needs images, got " +
                  to_string(shape_));
    options.in_channels = shape_[3];
    return add(std::move(name), std::make_unique<Conv2d>(options));
  }
  Builder& linear(std::string name, std::int64_t out) {
    return add(std::move(name), std::make_unique<Linear>(shape_.back(), out));
  }
  Builder& classifier(std::string name) { return linear(std::move(name), classes_); }
  Builder& relu(std::string name) { return add(std::move(name), std::make_unique<Relu>()); }
  Builder& flatten(std::string name) { return add(std::move(name), std::make_unique<Flatten>()); }
  Builder& max_pool(std::string name, std::int64_t size) {
    return add(std::move(name), std::make_unique<MaxPool>(size));
  }
  Graph take() { return std::move(graph_); }

 private:
  Builder& add(std::string name, std::unique_ptr<Op> op) {
    shape_ = op->output_shape(std::span(&shape_, 1));
    graph_.add(std::move(name), std::move(op));
    return *this;
  }

  Graph graph_;
  Shape shape_;  // of the last value, batch 1
  std::int64_t classes_;
};

struct Row {
  std::string_view name;
  void (*build)(Builder&);
};

const Row kRows[] = {
#define NUMEMU_NET(name, ...) {#name, [](Builder& net) { net.__VA_ARGS__; }},
#include "emu/net/nets.def"
#undef NUMEMU_NET
};

}  // namespace

Graph build_net(std::string_view name, const Shape& input_shape, std::int64_t classes) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    Builder builder(name, input_shape, classes);
    row.build(builder);
    return builder.take();
  }
  throw Error(unknown_name("network", name, net_names()));
}

std::vector<std::string> net_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

}  // namespace numemu::net
