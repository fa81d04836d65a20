// Checks operators that only move elements: which input element each result element is.
#pragma once
#include <functional>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::test {

/// The place of a flat index along every axis.
inline Shape places(const Shape& shape, std::int64_t flat) {
  Shape place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; flat /= shape[i]) place[i] = flat % shape[i];
  return place;
}
inline std::int64_t flat_index(const Shape& shape, const Shape& place) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + place[i];
  return flat;
}

/// An element of an input; input -1: `constant`.
struct Moved {
  int input = 0;
  Shape place;
  double constant = 0;
};

/// Checks the shape, every element, and the gradients; at most `copies` results read one element.
inline void check_mover(Op& op, const std::vector<Shape>& shapes, const Shape& result,
                        const std::function<Moved(const Shape& place)>& source,
                        std::int64_t copies = 1) {
  REQUIRE(op.output_shape(shapes) == result);
  CHECK(op.result() == ResultKind::view);
  const auto reference = [&](const std::vector<Doubles>& arguments) {
    Doubles y;
    for (std::int64_t i = 0; i < element_count(result); ++i) {
      const Moved moved = source(places(result, i));
      y.push_back(moved.input < 0
                      ? moved.constant
                      : arguments[moved.input][flat_index(shapes[moved.input], moved.place)]);
    }
    return y;
  };
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes)
    inputs.push_back(random_tensor(shape, static_cast<std::uint32_t>(inputs.size() + 1)));
  // Differences of sums of at most a few hundred float64 terms over 2^-11 err by less than 2^-32;
  // sums of copies round in float32.
  check_op(op, inputs, reference, 0x1p-32 + (copies > 1 ? dot_tolerance(copies) : 0));
}

}  // namespace numemu::net::test
