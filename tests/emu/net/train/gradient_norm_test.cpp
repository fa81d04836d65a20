// The global norm against long double, for any number of threads, and the clipping.
#include "emu/net/train/gradient_norm.hpp"

#include <omp.h>

#include <cmath>
#include <limits>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::gradient_norm_test {
namespace {

std::vector<Tensor> gradients() {
  return {test::random_tensor({130, 70}, 1), Tensor(), test::random_tensor({3}, 2),
          test::random_tensor({9000}, 3)};
}

TEST_CASE("the norm is that of all elements together for any thread count", "[fast]") {
  const std::vector<Tensor> tensors = gradients();
  long double sum = 0;
  for (const Tensor& tensor : tensors) {
    for (const float x : tensor.data) sum += static_cast<long double>(x) * x;
  }
  // A tree over lanes of 512 terms: far fewer than 2^10 roundings of 2^-53 in any sum.
  constexpr double kTolerance = 0x1p-43;
  omp_set_num_threads(1);
  const double norm = global_norm(tensors);
  CHECK(norm == Approx(static_cast<double>(std::sqrt(sum))).epsilon(kTolerance));
  for (const int threads : {2, 3}) {
    omp_set_num_threads(threads);
    CHECK(global_norm(tensors) == norm);
  }
  omp_set_num_threads(omp_get_num_procs());
  CHECK(global_norm({}) == 0);
}

TEST_CASE("clipping scales to the limit and leaves smaller gradients alone", "[fast]") {
  const std::vector<Tensor> given = gradients();
  std::vector<Tensor> tensors = given;
  const double norm = global_norm(tensors);
  clip_to_norm(tensors, norm, norm);
  CHECK(tensors[3].data == given[3].data);
  clip_to_norm(tensors, norm, norm / 4);
  bool quarters = true;
  for (std::size_t i = 0; i < given[3].data.size(); ++i)
    quarters = quarters && tensors[3].data[i] == given[3].data[i] / 4;
  CHECK(quarters);
  tensors = given;
  clip_to_norm(tensors, norm, 1);
  CHECK(global_norm(tensors) == Approx(1).epsilon(0x1p-22));  // a factor and a product in float32
  tensors = given;
  clip_to_norm(tensors, std::numeric_limits<double>::quiet_NaN(), 1);
  CHECK(tensors[0].data == given[0].data);
}

}  // namespace
}  // namespace numemu::net::gradient_norm_test
