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
      gradients.push_back({static_cast<std::int64_t>(gradients.size()), 0, std::move(worker)});
    return gradients;
  };
  Numerics numerics;
  CHECK(numerics.exchange({}, sent({one(7)}))[0].data[0] == 7);
  CHECK(numerics.exchange({}, sent({one(1), one(0x1p25f), one(-0x1p25f), one(8)}))[0].data[0] ==
        2);  // (0 + 8) / 4
  CHECK_THROWS_AS(numerics.exchange({}, {}), Error);
  CHECK_THROWS_WITH(numerics.exchange({}, sent({one(1), {Tensor({2}, 1)}})),
                    Catch::Contains("worker 1"));
}

TEST_CASE("the default exchange weighs workers, not micro-batches", "[fast]") {
  std::vector<WorkerGradient> gradients;
  for (const auto& [worker, batch, x] : {std::tuple{0, 0, 1.0f}, {0, 1, 3.0f}, {1, 0, 6.0f}})
    gradients.push_back({worker, batch, {Tensor({1}, x)}});
  Numerics numerics;
  CHECK(numerics.exchange({}, std::move(gradients))[0].data[0] == 4);  // ((1 + 3) / 2 + 6) / 2
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

TEST_CASE("a worker sends the mean of its micro-batches", "[fast]") {
  std::vector<WorkerGradient> gradients;
  for (const auto& [worker, batch, x] :
       {std::tuple{0, 0, 1.0f}, {0, 1, 0x1p25f}, {0, 2, -0x1p25f}, {3, 0, 6.0f}})
    gradients.push_back({worker, batch, {Tensor({1}, x), Tensor()}});
  const std::vector<WorkerGradient> means = worker_means(std::move(gradients));
  REQUIRE(means.size() == 2);
  CHECK(means[0].worker == 0);
  CHECK(means[0].parameters[0].data[0] == 0);  // 1 + 2^25 is 2^25
  CHECK(means[0].parameters[1].empty());
  CHECK((means[1].worker == 3 && means[1].micro_batch == 0));
  CHECK(means[1].parameters[0].data[0] == 6);
}

TEST_CASE("workers that send nothing or other shapes are refused", "[fast]") {
  CHECK_THROWS_WITH(worker_means({}), Catch::Contains("no worker"));
  std::vector<WorkerGradient> gradients{{0, 0, {Tensor({2})}}, {1, 0, {Tensor({3})}}};
  CHECK_THROWS_WITH(worker_means(std::move(gradients)), Catch::Contains("worker 1"));
}

}  // namespace

}  // namespace numemu::net::numerics_test
