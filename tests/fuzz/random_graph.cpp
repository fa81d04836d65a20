#include "tests/fuzz/random_graph.hpp"

#include <algorithm>
#include <string>

#include "tests/emu/net/model/onnx_models.hpp"

namespace numemu::fuzz {
namespace {

using Dims = std::vector<std::int64_t>;
using net::test::attribute;
using net::test::text_attribute;

/// A value [batch, time, width] of the network.
struct Value {
  std::string name;
  std::int64_t time = 1, width = 1;
};

class Maker {
 public:
  explicit Maker(Draws& draws) : draws_(draws) {}

  net::ImportedModel make() {
    const std::int64_t inputs = draws_.once_in(3) ? 2 : 1;
    for (std::int64_t i = 0; i < inputs; ++i) {
      const Value x{"x" + std::to_string(i), draws_.of(kLengths), draws_.of(kWidths)};
      writer_.input(x.name, {-1, x.time, x.width});
      values_.push_back(x);
    }
    const std::int64_t steps = 2 + draws_.below(5);
    for (std::int64_t i = 0; i < steps; ++i) step();
    finish();
    writer_.output(values_.back().name);
    if (draws_.once_in(3)) writer_.output(any().name);
    return writer_.import(13);
  }

 private:
  /// Now and then empty.
  std::int64_t extent(const Dims& usual) { return draws_.once_in(150) ? 0 : draws_.of(usual); }
  std::int64_t length() { return extent(kLengths); }
  std::int64_t width() { return extent(kWidths); }
  /// The last value more often than another one.
  const Value& any() { return draws_.once_in(2) ? values_.back() : draws_.of(values_); }
  void add(const std::string& name, std::int64_t time, std::int64_t width) {
    values_.push_back({name, time, width});
  }

  /// A tensor of the file: an initializer, sometimes one of the same shape again, sometimes behind
  /// views that the graph keeps or the import folds.
  std::string constant(const Dims& dims) {
    for (const auto& [name, shape] : constants_) {
      if (shape == dims && draws_.once_in(2)) return name;
    }
    std::int64_t count = 1;
    for (const std::int64_t extent : dims) count *= extent;
    const std::string name = "c" + std::to_string(constants_.size()) + ".weight";
    const std::vector<float> numbers = draws_.numbers(count);
    std::string seen = name;
    const std::int64_t views = draws_.below(4);
    if (views == 1) {
      writer_.floats(name, {count}, numbers);
      seen = writer_.op("Reshape", {name, writer_.wholes(dims)});
    } else if (views == 2 && dims.size() > 1) {
      Dims turned(dims.rbegin(), dims.rend()), order;
      for (std::int64_t i = std::ssize(dims); i-- > 0;) order.push_back(i);
      writer_.floats(name, turned, numbers);
      seen = writer_.op("Transpose", {name}, {attribute("perm", order)});
    } else if (views == 3) {
      Dims longer = dims;
      longer.insert(longer.begin(), 1);
      writer_.floats(name, longer, numbers);
      seen = writer_.op("Squeeze", {name, writer_.wholes({0})});
    } else {
      writer_.floats(name, dims, numbers);
    }
    constants_.emplace_back(seen, dims);
    return seen;
  }

  std::string turned(const std::string& x, const Dims& order) {
    return writer_.op("Transpose", {x}, {attribute("perm", order)});
  }
  std::string shaped(const std::string& x, const Dims& dims) {
    return writer_.op("Reshape", {x, writer_.wholes(dims)});
  }

  void recurrent(const Value& x) {
    const std::int64_t hidden = draws_.of(Dims{1, 3, 8}), kind = draws_.below(3);
    const std::int64_t directions = draws_.once_in(3) ? 2 : 1;
    const std::string type = kind == 0 ? "LSTM" : kind == 1 ? "GRU" : "RNN";
    const std::int64_t gates = kind == 0 ? 4 : kind == 1 ? 3 : 1;
    const std::string first = turned(x.name, {1, 0, 2});
    const std::string w = constant({directions, gates * hidden, x.width});
    const std::string r = constant({directions, gates * hidden, hidden});
    std::vector<std::string> attributes{attribute("hidden_size", hidden)};
    if (directions == 2) attributes.push_back(text_attribute("direction", "bidirectional"));
    if (kind == 1 && draws_.once_in(2))
      attributes.push_back(attribute("linear_before_reset", std::int64_t{1}));
    const std::string y = writer_.op(type, {first, w, r}, attributes);  // [t, d, n, h]
    add(shaped(turned(y, {2, 0, 1, 3}), {0, x.time, directions * hidden}), x.time,
        directions * hidden);
  }

  void convolution(const Value& x) {
    std::int64_t groups = 1;
    if (x.width > 0 && draws_.once_in(2))
      groups = draws_.once_in(2) ? x.width : x.width % 2 == 0 ? 2 : 1;
    const std::int64_t out = groups * (1 + draws_.below(3)), kernel = draws_.once_in(2) ? 1 : 3;
    const std::string w = constant({out, x.width / groups, kernel});
    const std::string y =
        writer_.op("Conv", {turned(x.name, {0, 2, 1}), w},
                   {attribute("group", groups), attribute("pads", Dims{kernel / 2, kernel / 2}),
                    attribute("kernel_shape", Dims{kernel})});
    add(turned(y, {0, 2, 1}), x.time, out);
  }

  void einsum(const Value& x) {
    const std::int64_t out = width(), kind = draws_.below(4);
    const auto op = [&](const char* equation, const std::vector<std::string>& operands) {
      return writer_.op("Einsum", operands, {text_attribute("equation", equation)});
    };
    if (kind == 0) {
      add(op("btc,cd->btd", {x.name, constant({x.width, out})}), x.time, out);
    } else if (kind == 1) {
      add(op("btc,bsc->bts", {x.name, x.name}), x.time, x.time);
    } else if (kind == 2) {
      add(op("st,btc->bsc", {constant({out, x.time}), x.name}), out, x.width);
    } else {
      add(op("btc,tcd->btd", {x.name, constant({x.time, x.width, out})}), x.time, out);
    }
  }

  /// A mixture of experts: all of them, weighted by a softmax of gates.
  void experts(const Value& x) {
    const std::int64_t count = 1 + draws_.below(3), out = width();
    const std::string gates =
        writer_.op("Softmax", {writer_.op("MatMul", {x.name, constant({x.width, count})})},
                   {attribute("axis", std::int64_t{-1})});
    std::string table = constant({count, x.width, out});
    if (draws_.once_in(2)) {
      Dims chosen;
      for (std::int64_t i = 0; i < count; ++i) chosen.push_back(draws_.below(count));
      table = writer_.op("Gather", {table, writer_.wholes(chosen)},
                         {attribute("axis", std::int64_t{0})});
    }
    const std::string each = writer_.op(
        "MatMul", {writer_.op("Unsqueeze", {x.name, writer_.wholes({1})}), table});  // [n, e, t, o]
    const std::string weight =
        writer_.op("Unsqueeze", {turned(gates, {0, 2, 1}), writer_.wholes({3})});  // [n, e, t, 1]
    add(writer_.op("ReduceSum", {writer_.op("Mul", {each, weight}), writer_.wholes({1})},
                   {attribute("keepdims", std::int64_t{0})}),
        x.time, out);
  }

  void cut(const Value& x) {
    const std::int64_t axis = 1 + draws_.below(2), all = axis == 1 ? x.time : x.width;
    const std::int64_t left = 1 + draws_.below(std::max<std::int64_t>(1, all));
    const std::string y = writer_.op(
        "Slice", {x.name, writer_.wholes({0}), writer_.wholes({left}), writer_.wholes({axis})});
    add(y, axis == 1 ? left : x.time, axis == 1 ? x.width : left);
  }

  void step() {
    const Value x = any();
    switch (draws_.below(16)) {
      case 0:
        return add(writer_.op(draws_.of(kPointwise), {x.name}), x.time, x.width);
      case 1:
        return add(writer_.op(draws_.of(kBinary), {x.name, constant({x.width})}), x.time, x.width);
      case 2:
      case 3: {
        const std::int64_t out = width();
        return add(writer_.op("MatMul", {x.name, constant({x.width, out})}), x.time, out);
      }
      case 4: {  // a constant on the left
        const std::int64_t out = length();
        return add(writer_.op("MatMul", {constant({out, x.time}), x.name}), out, x.width);
      }
      case 5: {  // constant queries or keys
        const std::int64_t out = length();
        return add(writer_.op("MatMul", {x.name, constant({1, x.width, out})}), x.time, out);
      }
      case 6:
        return einsum(x);
      case 7:
      case 8:
        return recurrent(x);
      case 9:
      case 10:
        return convolution(x);
      case 11:
        return experts(x);
      case 12:
        return cut(x);
      case 13:
        return add(turned(x.name, {0, 2, 1}), x.width, x.time);
      case 14:
        return add(shaped(x.name, {0, 1, x.time * x.width}), 1, x.time * x.width);
      default:
        return add(writer_.op("ReduceMean", {x.name}, {attribute("axes", Dims{1})}), 1, x.width);
    }
  }

  void finish() {
    const Value x = values_.back();
    const std::string scores =
        writer_.op("MatMul", {x.name, turned(x.name, {0, 2, 1})}, {}, "block1.attention.scores");
    const std::string weights =
        writer_.op("Softmax", {scores}, {attribute("axis", std::int64_t{-1})});
    const std::string gathered =
        writer_.op("MatMul", {weights, x.name}, {}, "block1.attention.gathered");
    const std::int64_t out = width();
    writer_.floats("block4.fc.weight", {x.width, out}, draws_.numbers(x.width * out));
    writer_.floats("head.weight", {out, 3}, draws_.numbers(out * 3));
    const std::string inner = writer_.op("MatMul", {gathered, "block4.fc.weight"});
    add(writer_.op("MatMul", {inner, "head.weight"}), x.time, 3);
  }

  const Dims kLengths{1, 1, 2, 3, 5}, kWidths{1, 2, 4, 6, 16, 20, 33};
  const std::vector<std::string> kPointwise{"Relu", "Tanh", "Sigmoid", "Neg", "Abs"};
  const std::vector<std::string> kBinary{"Add", "Sub", "Mul"};
  Draws& draws_;
  net::test::ModelWriter writer_;
  std::vector<Value> values_;
  std::vector<std::pair<std::string, Dims>> constants_;
};

}  // namespace

std::vector<float> Draws::numbers(std::int64_t count) {
  const std::int64_t kind = below(12);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) {
    const auto drawn = static_cast<float>(below(2001) - 1000) / 512;
    const bool zero = once_in(8);
    x = kind == 0 ? 0.0f : kind == 1 ? 0.5f : zero ? 0.0f : drawn;
  }
  return out;
}

net::ImportedModel random_graph(Draws& draws) { return Maker(draws).make(); }

}  // namespace numemu::fuzz
