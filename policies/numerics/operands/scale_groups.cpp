#include "policies/numerics/operands/scale_groups.hpp"

#include <utility>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/ops/matmul.hpp"
#include "policies/numerics/operands/operand_scales.hpp"

namespace numemu::policies {
namespace {

/// The matrices of a source as rows x columns, with all that lies side by side as columns.
struct Matrices {
  std::int64_t outer, rows, columns;

  explicit Matrices(const net::ProductSide& side)
      : outer(side.stack.outer),
        rows(side.stack.rows(side.source->size())),
        columns(side.stack.inner * side.stack.width) {}
};

/// to[c][r] = from[r][c] of every matrix.
template <class T>
void turn(const T* from, std::int64_t count, std::int64_t rows, std::int64_t columns, T* to) {
  net::for_each_row(count * columns, rows, [=](std::int64_t line) {
    const T* const matrix = from + line / columns * rows * columns + line % columns;
    for (std::int64_t r = 0; r < rows; ++r) to[line * rows + r] = matrix[r * columns];
  });
}

/// Whether each column of the product has a scale of its own: a token of the keys, a channel of the
/// values.
bool by_result(bool channel, net::Role operand) { return channel == (operand == net::Role::value); }
bool by_columns(bool channel, net::Role operand, bool along_rows) {
  return by_result(channel, operand) == along_rows;
}

}  // namespace

ScaleGroups scale_groups(const RolePolicy& policy, net::Role operand, const net::Product& p,
                         const net::ProductSide& side, std::int64_t samples) {
  const std::int64_t size = side.source->size();
  const bool channel = policy.granularity == Granularity::channel;
  if (policy.granularity == Granularity::tensor) return {.count = samples};
  const bool forward = p.kind == net::GemmKind::fprop;
  if (operand == net::Role::weight)
    return {.count = channel ? side.source->dim(0) : size / side.stack.width,
            .of_results = forward};  // dgrad reduces along the channels
  const bool own_lines = !side.along_rows && reads_whole_lines(p, side);
  if (operand == net::Role::gradient)  // wgrad reduces along the rows
    return {.count = size / side.stack.width,
            .of_results = p.kind == net::GemmKind::dgrad && own_lines};
  const bool lines = forward && own_lines;
  if (operand == net::Role::activation)
    return {.count = size / side.stack.width, .of_results = lines};
  // dgrad reads the operand along its other axis.
  const bool columns = by_columns(channel, operand, forward ? side.along_rows : !side.along_rows);
  const Matrices m(side);
  return {.count = columns ? m.outer * m.columns : size / side.stack.width,
          .columns = columns,
          .of_results = forward && by_result(channel, operand) && (columns || lines)};
}

ScaleGroups scale_groups(const RolePolicy& policy, const net::GemmLayer& layer, net::Role operand,
                         const net::Shape& shape, std::int64_t samples) {
  const std::int64_t size = net::element_count(shape);
  const bool channel = policy.granularity == Granularity::channel;
  if (policy.granularity == Granularity::tensor) return {.count = samples};
  if (operand == net::Role::weight) return {.count = shape.at(0)};
  const auto* const product = dynamic_cast<const net::MatMul*>(layer.node->op.get());
  const net::MatMulOptions options = product != nullptr ? product->options() : net::MatMulOptions{};
  // One head of the queries, keys and values is a matrix of its own.
  const bool heads = options.heads > 0 && shape.size() == 3;
  const std::int64_t width = shape.back() / (heads ? options.heads : 1);
  if (operand == net::Role::activation) return {.count = size / width};
  const bool columns = by_columns(channel, operand, !options.transpose_b);
  return {.count = size / (columns ? shape[shape.size() - 2] : width), .columns = columns};
}

bool waits_for_results(const RolePolicy& policy, net::Role operand) {
  return policy.granularity == Granularity::tensor ||
         (operand != net::Role::activation &&
          by_result(policy.granularity == Granularity::channel, operand));
}

const float* in_groups(const ScaleGroups& groups, const net::ProductSide& side,
                       std::vector<float>& copy) {
  const net::Elements& x = side.source->data;
  if (!groups.columns) return x.data();
  const Matrices m(side);
  copy.resize(x.size());
  turn(x.data(), m.outer, m.rows, m.columns, copy.data());
  return copy.data();
}

template <class T>
void from_groups(const ScaleGroups& groups, const net::ProductSide& side,
                 std::vector<T>& elements) {
  if (!groups.columns || elements.empty()) return;
  const Matrices m(side);
  std::vector<T> turned(elements.size());
  turn(elements.data(), m.outer, m.columns, m.rows, turned.data());
  elements = std::move(turned);
}
template void from_groups(const ScaleGroups&, const net::ProductSide&, std::vector<float>&);
template void from_groups(const ScaleGroups&, const net::ProductSide&, std::vector<std::uint8_t>&);
template void from_groups(const ScaleGroups&, const net::ProductSide&, std::vector<std::uint16_t>&);

}  // namespace numemu::policies
