// What a worker sends of its micro-batches.
#include "emu/net/worker_means.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

using namespace numemu;
using namespace numemu::net;

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
