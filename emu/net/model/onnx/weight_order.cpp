#include "emu/net/model/onnx/weight_order.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "emu/net/model/onnx/constant.hpp"
#include "emu/net/model/onnx/einsum.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/recurrent.hpp"

namespace numemu::net {

namespace {

/// The file's axes take those steps in the graph's weight.
WeightOrder strided(Shape dims, Shape scale_dims, const Shape& steps, std::int64_t depth_axis) {
  const auto from = [dims, steps](std::int64_t i) {
    std::int64_t at = 0;
    for (std::size_t axis = dims.size(); axis-- > 0; i /= dims[axis])
      at += i % dims[axis] * steps[axis];
    return at;
  };
  return {std::move(dims), std::move(scale_dims), from, depth_axis};
}

}  // namespace

WeightOrder order_of_matrix(std::int64_t out, std::int64_t in) {
  return {{out, in}, {out, 1}, [](std::int64_t i) { return i; }, 1};
}

WeightOrder order_of_conv(const Shape& shape) {
  Shape dims = shape, scales(shape.size(), 1), steps = strides_of(shape);
  scales[0] = dims[0];
  std::vector<std::int64_t> axes = ascending(shape.size());
  for (Shape* list : {&dims, &steps, &axes})
    std::rotate(list->begin() + 1, list->end() - 1, list->end());
  WeightOrder order = strided(std::move(dims), std::move(scales), steps, 1);
  order.axes = std::move(axes);
  return order;
}

WeightOrder order_of_turned(std::int64_t out, std::int64_t in) {
  return strided({in, out}, {1, out}, {1, in}, 0);
}

namespace {

/// Of a transposed convolution, which the file has as [in, out / groups, k..] with its taps in the
/// opposite order.
WeightOrder of_conv_transpose(const Shape& shape, std::int64_t groups) {
  const std::int64_t in = shape.back(), taps = element_count(shape) / (shape.front() * in),
                     out = shape.front() / groups;
  Shape dims = {in * groups, out}, scales(shape.size(), 1);
  dims.insert(dims.end(), shape.begin() + 1, shape.end() - 1);
  scales[0] = groups == 1 ? 1 : dims[0], scales[1] = out;
  return {std::move(dims), std::move(scales),
          [in, taps, out](std::int64_t i) {
            const std::int64_t row = i / (out * taps), o = i / taps % out, t = i % taps;
            const std::int64_t group = row / in, c = row % in;
            return ((group * out + o) * taps + taps - 1 - t) * in + c;
          },
          groups == 1 ? 0 : -1};
}

/// Letters of the operands and of the result. Nothing where the constant one has an ellipsis.
struct Labels {
  std::string constant, other, result;
};

std::optional<Labels> labels_of(std::string_view text, std::size_t constant) {
  const EinsumEquation equation = parse_equation(text);
  const std::vector<std::string>& terms = equation.terms;
  if (terms.size() < 2 || (terms.size() > 2 && constant > 0)) return std::nullopt;
  Labels out{terms[constant == 0 ? 0 : 1], "", equation.result};
  if (out.constant.find('.') != std::string::npos) return std::nullopt;
  for (std::size_t i = 0; i < terms.size(); ++i)
    if (i != (constant == 0 ? 0 : 1)) out.other += terms[i];
  return out;
}

/// The weight's rows are what the constant operand alone has, its columns what is summed, in the
/// order of the other operand (products.cpp).
std::optional<WeightOrder> of_einsum(const OnnxNode& node, const Shape& weight,
                                     std::size_t constant, const Shape& dims) {
  const std::optional<Labels> labels = labels_of(node.text_or("equation", ""), constant);
  if (!labels || labels->constant.size() != dims.size()) return std::nullopt;
  const auto has = [](const std::string& list, char c) {
    return list.find(c) != std::string::npos;
  };
  std::string order;
  for (const char c : labels->constant)
    if (!has(labels->other, c)) order += c;
  const std::size_t rows = order.size();
  for (const char c : labels->other)
    if (has(labels->constant, c) && !has(labels->result, c)) order += c;
  if (order.size() != dims.size() || element_count(dims) != element_count(weight))
    return std::nullopt;
  Shape steps(dims.size()), scales(dims.size(), 1);  // by axis of the file's weight
  std::int64_t step = 1, columns = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t axis = labels->constant.find(order[i]);
    steps[axis] = step;
    step *= dims[axis];
    if (i >= rows) columns *= dims[axis];
    if (i < rows) scales[axis] = dims[axis];
  }
  if (columns != weight.back()) return std::nullopt;
  const bool one = order.size() == rows + 1;  // axis of the depth
  return strided(dims, std::move(scales), steps,
                 one ? static_cast<std::int64_t>(labels->constant.find(order.back())) : -1);
}

/// The gates of an operator's matrices in its own order, as ONNX numbers them (recurrent.cpp).
std::span<const std::int64_t> gates_of(const Op& op) {
  static constexpr std::array<std::int64_t, 4> kLstm = {0, 2, 3, 1};
  static constexpr std::array<std::int64_t, 3> kGru = {0, 1, 2};
  if (op.kind() == "lstm") return kLstm;
  return std::span(kGru).first(op.kind() == "gru" ? 3 : 1);
}

/// Of `count` numbers for each gate; `gates` are those that the parameter has.
std::int64_t own_row(std::span<const std::int64_t> gates, std::int64_t hidden, std::int64_t row) {
  // The file has gates in ascending order of their numbers.
  std::vector<std::int64_t> sorted(gates.begin(), gates.end());
  std::ranges::sort(sorted);
  const std::int64_t gate = sorted[static_cast<std::size_t>(row / hidden)];
  return (std::ranges::find(gates, gate) - gates.begin()) * hidden + row % hidden;
}

RecurrentBlock block_of(const Op& op, std::string product, std::size_t parameter,
                        std::span<const std::int64_t> gates) {
  const std::int64_t hidden = dynamic_cast<const Recurrent&>(op).options().hidden,
                     rows = hidden * std::ssize(gates),
                     columns = op.parameters()[parameter].value.shape.back();
  std::vector<std::int64_t> own;
  for (std::int64_t r = 0; r < rows; ++r) own.push_back(own_row(gates, hidden, r));
  return {std::move(product),
          parameter,
          {{1, rows, columns},
           {1, rows, 1},
           [own = std::move(own), columns](std::int64_t i) {
             return own[static_cast<std::size_t>(i / columns)] * columns + i % columns;
           },
           2}};
}

/// The elements of a tensor of `dims` at every index of `grid` times `steps`.
std::vector<std::int64_t> elements_at(const Shape& dims, const Shape& grid, const Shape& steps) {
  const Shape strides = strides_of(dims);
  std::vector<std::int64_t> out(static_cast<std::size_t>(element_count(grid)));
  for (std::int64_t i = 0; i < std::ssize(out); ++i) {
    std::int64_t rest = i;
    for (std::size_t k = dims.size(); k-- > 0; rest /= grid[k])
      out[static_cast<std::size_t>(i)] += rest % grid[k] * steps[k] * strides[k];
  }
  return out;
}

}  // namespace

std::vector<float> WeightOrder::scales(const std::vector<float>& channels) const {
  const std::int64_t each = element_count(dims) / std::ssize(channels);
  std::vector<float> out;
  for (const std::int64_t element : elements_at(dims, scale_dims, Shape(dims.size(), 1)))
    out.push_back(channels[static_cast<std::size_t>(from(element) / each)]);
  return out;
}

Shape WeightOrder::block_dims(std::int64_t size) const {
  Shape out = dims;
  std::int64_t& depth = out.at(static_cast<std::size_t>(depth_axis));
  depth = (depth + size - 1) / size;
  return out;
}

std::vector<std::int64_t> WeightOrder::block_starts(std::int64_t size) const {
  Shape steps(dims.size(), 1);
  steps.at(static_cast<std::size_t>(depth_axis)) = size;
  std::vector<std::int64_t> out = elements_at(dims, block_dims(size), steps);
  for (std::int64_t& element : out) element = from(element);
  return out;
}

std::int64_t WeightOrder::axis(std::int64_t channels) const {
  if (element_count(scale_dims) != channels) return -1;
  const auto found = std::ranges::find(scale_dims, channels);
  return found == scale_dims.end() ? -1 : found - scale_dims.begin();
}

std::optional<WeightInput> weight_input(const OnnxNode& node, const Op& op, std::size_t constant,
                                        const Shape& dims) {
  if (op.parameters().empty() || !node.domain.empty()) return std::nullopt;
  const Shape& shape = op.parameters()[0].value.shape;
  const auto* const conv = dynamic_cast<const Conv*>(&op);
  if (node.op_type == "Conv" && conv != nullptr) return WeightInput{1, order_of_conv(shape)};
  if (node.op_type == "ConvTranspose" && conv != nullptr)
    return WeightInput{1, of_conv_transpose(shape, conv->options().groups)};
  if (op.kind() != "linear" || shape.size() != 2) return std::nullopt;
  const std::int64_t out = shape[0], in = shape[1];
  if (node.op_type == "Gemm" && constant == 0)
    return WeightInput{
        0, node.integer_or("transA", 0) != 0 ? order_of_turned(out, in) : order_of_matrix(out, in)};
  if (node.op_type == "Gemm")
    return WeightInput{
        1, node.integer_or("transB", 0) != 0 ? order_of_matrix(out, in) : order_of_turned(out, in)};
  if (node.op_type == "Einsum" && node.inputs.size() == 2) {
    const std::optional<WeightOrder> order = of_einsum(node, shape, constant, dims);
    return order ? std::optional(WeightInput{constant, *order}) : std::nullopt;
  }
  if (node.op_type != "MatMul") return std::nullopt;
  WeightOrder order = constant == 0 ? order_of_matrix(out, in) : order_of_turned(out, in);
  // A vector, or a matrix behind axes of one element.
  if (!dims.empty() && dims.size() != 2) {
    if (element_count(dims) != out * in) return std::nullopt;
    const std::int64_t axis = std::ssize(dims) - (constant == 0 ? 2 : 1);
    order.dims = dims;
    order.scale_dims.assign(dims.size(), 1);
    if (dims.size() > 2) order.scale_dims[static_cast<std::size_t>(axis)] = out;
    order.depth_axis = dims.size() == 1 ? 0 : std::ssize(dims) - (constant == 0 ? 1 : 2);
  }
  return WeightInput{constant, std::move(order)};
}

RecurrentBlocks recurrent_blocks(const Op& op) {
  const std::span<const std::int64_t> gates = gates_of(op);
  RecurrentBlocks out;
  out.input.push_back(block_of(op, ".input", 0, gates));
  const auto* const gru = dynamic_cast<const Gru*>(&op);
  const bool candidate = gru != nullptr && !gru->reset_after();
  out.recurrent.push_back(
      block_of(op, ".recurrent", 1, gates.first(gates.size() - (candidate ? 1 : 0))));
  if (candidate) out.recurrent.push_back(block_of(op, ".candidate", 3, gates.last(1)));
  return out;
}

std::vector<float> recurrent_bias(const Op& op) {
  const std::span<const std::int64_t> gates = gates_of(op);
  const std::int64_t hidden = dynamic_cast<const Recurrent&>(op).options().hidden,
                     rows = hidden * std::ssize(gates);
  const auto* const gru = dynamic_cast<const Gru*>(&op);
  const auto parameters = op.parameters();
  std::vector<float> out(static_cast<std::size_t>(2 * rows));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t own = own_row(gates, hidden, r);
    out[static_cast<std::size_t>(r)] = parameters[2].value.data[static_cast<std::size_t>(own)];
    if (gru != nullptr && gru->reset_after())
      out[static_cast<std::size_t>(rows + r)] =
          parameters[3].value.data[static_cast<std::size_t>(own)];
  }
  return out;
}

}  // namespace numemu::net
