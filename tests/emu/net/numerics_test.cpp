#include "emu/net/numerics.hpp"

#include <cmath>

#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::numerics_test {
namespace {

TEST_CASE("the default product is the fused chain of f32.sequential", "[fast]") {
  const Tensor a = test::random_tensor({4, 70}, 1), b = test::random_tensor({70, 3}, 2);
  const unit::Gather rows = unit::Gather::matrix(4, 70),
                     columns = unit::Gather::matrix(3, 70, true);
  std::vector<float> d(12);
  Numerics numerics;
  Product product{"layer", GemmKind::fprop, 4, 3, 70, {}, {}, d.data(), {}};
  product.a = {&a, &rows, Role::activation, {1, 1, 70}, false};
  product.b = {&b, &columns, Role::weight, {1, 1, 3}, true};
  product.d_stack = {1, 1, 3};
  numerics.product({}, product);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      float chain = 0;
      for (int k = 0; k < 70; ++k) chain = std::fma(a.data[i * 70 + k], b.data[k * 3 + j], chain);
      CHECK(d[i * 3 + j] == chain);
    }
  }
}

TEST_CASE("the default update adds in float32", "[fast]") {
  Tensor value({2}), gradient({2});
  value.data = {1, 0x1p24f};
  const std::vector<float> delta{0x1p-24f, 1};
  Numerics numerics;
  numerics.update({}, {"w", &value, &gradient, &delta});
  CHECK(value.data == std::vector<float>{1, 0x1p24f});  // both ties to even
}

TEST_CASE("the default exchange is the mean in worker order", "[fast]") {
  const auto one = [](float x) { return std::vector<Tensor>{Tensor({1}, x)}; };
  const auto sent = [](std::vector<std::vector<Tensor>> workers) {
    std::vector<WorkerGradient> gradients;
    for (std::vector<Tensor>& worker : workers)
      gradients.push_back({static_cast<std::int64_t>(gradients.size()), std::move(worker)});
    return gradients;
  };
  Numerics numerics;
  CHECK(exchange_all(numerics, {}, sent({one(7)})).gradients[0].data[0] == 7);
  CHECK(exchange_all(numerics, {}, sent({one(1), one(0x1p25f), one(-0x1p25f), one(8)}))
            .gradients[0]
            .data[0] == 2);  // (0 + 8) / 4
  CHECK_THROWS_AS(exchange_all(numerics, {}, {}), Error);
  CHECK_THROWS_WITH(exchange_all(numerics, {}, sent({one(1), {Tensor({2}, 1)}})),
                    Catch::Contains("worker 1"));
}

TEST_CASE("by default an optimizer's state is left as it is", "[fast]") {
  Tensor state({2}, 0.3f);
  Numerics numerics;
  numerics.optimizer_state({}, "w", "velocity", state);
  CHECK(state.data == std::vector<float>{0.3f, 0.3f});
}

TEST_CASE("roles and kinds have names", "[fast]") {
  CHECK(to_string(Role::gradient) == "gradient");
  CHECK(to_string(GemmKind::wgrad) == "wgrad");
}

}  // namespace

}  // namespace numemu::net::numerics_test
