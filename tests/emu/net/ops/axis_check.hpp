// What operators along one axis have in common: threads, strides, axes that are not there.
#pragma once
#include <string>
#include <vector>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::test {

/// The same bits on any number of threads, and along axis 0 of the transposed matrix.
template <class Operator>
void check_axes() {
  const Tensor x = random_tensor({100, 130}, 3);
  check_threads(Operator(), {x});
  check_threads(Operator(0), {x});
  Tensor transposed({130, 100});
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 130; ++k) transposed.data[k * 100 + i] = x.data[i * 130 + k];
  }
  Numerics numerics;
  const Tensor y = run_op(Operator(1), {x}, numerics).output;
  const Tensor t = run_op(Operator(0), {transposed}, numerics).output;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 130; ++k) REQUIRE(t.data[k * 100 + i] == y.data[i * 130 + k]);
  }
}

template <class Operator>
void check_refused_axes(const std::string& name) {
  const std::vector<Shape> two{{2, 3}}, empty{{2, 0}}, none;
  CHECK_THROWS_WITH(Operator(2).output_shape(two),
                    Catch::Contains(name) && Catch::Contains("[2, 3]"));
  CHECK_THROWS_WITH(Operator(-3).output_shape(two), Catch::Contains("axis -3"));
  CHECK_THROWS_WITH(Operator().output_shape(empty), Catch::Contains("[2, 0]"));
  CHECK_THROWS_WITH(Operator().output_shape(none), Catch::Contains("one input"));
}

}  // namespace numemu::net::test
