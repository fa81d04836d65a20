// Operators that only move elements: other shapes, other orders of axes, parts, borders, constants.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/op.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Where the elements of a box lie: element (i, j, ..) at start + i steps[0] + j steps[1] + ..
struct Strides {
  std::int64_t start = 0;
  Shape steps;
};

/// Those of a row-major tensor.
Strides row_major(const Shape&);

/// to[..] = from[..] for every element of the box `extent`. Both have one step an axis; the
/// elements written are distinct.
void strided_copy(const Shape& extent, const float* from, const Strides& from_strides, float* to,
                  const Strides& to_strides);

/// `axis` counted from the front; throws Error naming `op` when a tensor of that rank has no such
/// axis.
std::int64_t checked_axis(const char* op, std::int64_t axis, std::size_t rank);

/// [batch, ...] -> [batch, product of the rest].
class Flatten final : public Op {
 public:
  Flatten()
      : Op({.kind = "flatten", .result = ResultKind::view, .inputs = kNoInput, .in_place = true}) {}
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;
};

/// To `target`, the batch's axis included: 0 copies the input's axis of that place, one -1 takes
/// what is left. A view.
class Reshape final : public Op {
 public:
  /// Throws Error for sizes below -1 and more than one -1.
  explicit Reshape(Shape target);
  const Shape& target() const { return target_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  Shape target_;
};

/// Axis i of the result is axis permutation[i] of the input; the batch is axis 0. A view: its
/// elements already passed the hooks.
class Transpose final : public Op {
 public:
  /// Throws Error unless it is a permutation of 0 to n - 1.
  explicit Transpose(std::vector<std::int64_t> permutation);
  const std::vector<std::int64_t>& permutation() const { return permutation_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::vector<std::int64_t> permutation_;
};

/// [.., n1, ..], [.., n2, ..].. -> [.., n1 + n2 + .., ..]; all other axes equal. A negative axis
/// counts from the end. A view: its elements already passed the hooks.
class Concat final : public Op {
 public:
  explicit Concat(std::int64_t axis)
      : Op({.kind = "concat",
            .result = ResultKind::view,
            .inputs = kNoInput,
            .on_codes = OnCodes::joins}),
        axis_(axis) {}
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::int64_t axis_;
};

/// Elements start, start + step, .. before `end` of an axis, as Python's slices: negative axes,
/// starts and ends count from the end, and bounds beyond it are clamped.
struct SliceRange {
  static constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();
  /// With a negative step: down to and with element 0.
  static constexpr std::int64_t kToTheStart = std::numeric_limits<std::int64_t>::min();

  std::int64_t axis = 0;
  std::int64_t start = 0, end = kToTheEnd;
  std::int64_t step = 1;  ///< not 0
};

/// A view: its elements already passed the hooks. The gradient of the rest is zero.
class Slice final : public Op {
 public:
  /// Throws Error for a step of 0.
  explicit Slice(std::vector<SliceRange>);
  const std::vector<SliceRange>& ranges() const { return ranges_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::vector<SliceRange> ranges_;
};

/// Axis i gets before[i] elements of `value` in front and after[i] behind; one number for every
/// axis, the batch too. A view: elements that already passed the hooks, and constants.
class Pad final : public Op {
 public:
  /// Throws Error for negative numbers, and unless both lists have the same length.
  Pad(std::vector<std::int64_t> before, std::vector<std::int64_t> after, float value = 0);
  const std::vector<std::int64_t>& before() const { return before_; }
  const std::vector<std::int64_t>& after() const { return after_; }
  float value() const { return value_; }
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  std::vector<std::int64_t> before_, after_;
  float value_;
};

/// Where a constant comes from, and what reads it.
struct ConstantOrigin {
  /// The tensor of the file that it is, or that it is computed from; "" without one.
  std::string tensor;
  bool computed = false;
  /// What its readers do says that it is a parameter (emu/net/train/learned_constants.hpp).
  enum class Role : std::uint8_t { unknown, vector, weight } role = Role::unknown;
};

/// No inputs; y = value, a parameter, by default an untrained one.
class Constant final : public Op {
 public:
  explicit Constant(Tensor value, bool trained = false);
  const ConstantOrigin& origin() const { return origin_; }
  void set_origin(ConstantOrigin origin) { origin_ = std::move(origin); }
  /// Throws Error when it is given inputs.
  Shape output_shape(Shapes inputs) const override;
  void forward(const OpCall&, OpInputs inputs, Tensor& output) const override;
  void backward(const OpCall&, const OpBackward&) const override;

 private:
  ConstantOrigin origin_;
};

}  // namespace numemu::net
