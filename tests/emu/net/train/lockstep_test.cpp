// Workers that meet: the order of their turns, synchronised batch normalisation against the whole
// batch in one pass, and batch normalisation of one's own against ghost batches.
#include "emu/net/train/lockstep.hpp"

#include <cmath>
#include <stdexcept>

#include "emu/net/train/train.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"

namespace numemu::net::lockstep_test {
namespace {

TEST_CASE("workers take turns from meeting to meeting", "[fast]") {
  std::string log;
  std::vector<std::vector<std::vector<double>>> seen;
  Lockstep(3).run([&](std::int64_t worker, Meeting& meeting) {
    // Worker 1 ends a meeting earlier than the others.
    const int meetings = worker == 1 ? 1 : 2;
    for (int i = 0; i < meetings; ++i) {
      log += static_cast<char>('a' + worker);
      const auto all = meeting.gather({10.0 * i + static_cast<double>(worker)});
      if (worker == 2) seen.push_back(all);
    }
    log += static_cast<char>('A' + worker);
  });
  CHECK(log == "abcaBcAC");
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == std::vector<std::vector<double>>{{0}, {1}, {2}});
  CHECK(seen[1] == std::vector<std::vector<double>>{{10}, {12}});
}

TEST_CASE("what one worker throws ends all of them", "[fast]") {
  CHECK_THROWS_WITH(Lockstep(4).run([&](std::int64_t worker, Meeting& meeting) {
    meeting.gather({});
    if (worker == 2) throw std::runtime_error("of worker 2");
    meeting.gather({});
  }),
                    "of worker 2");
}

class Synchronised : public Numerics {
 public:
  NormRule norm(const Step&, std::string_view) override { return {.synchronised = true}; }
};

std::vector<std::vector<float>> trained(std::int64_t workers, std::int64_t micro_batches,
                                        Numerics& numerics, std::int64_t batch = 64) {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data, /*dropout=*/false);  // whose draws differ by part
  TrainOptions options;
  options.optimizer = "sgd";
  options.epochs = 1;
  options.learning_rate = 0.01;
  options.batch = batch;
  options.workers = workers;
  options.micro_batches = micro_batches;
  train(graph, data, options, numerics);
  std::vector<std::vector<float>> values;
  for (const Parameter* parameter : graph.parameters()) values.push_back(parameter->value.data);
  return values;
}

double distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<float>>& b) {
  double difference = 0, size = 0;
  for (std::size_t p = 0; p < a.size(); ++p) {
    for (std::size_t i = 0; i < a[p].size(); ++i) {
      difference += std::pow(double{a[p][i]} - b[p][i], 2);
      size += std::pow(double{a[p][i]}, 2);
    }
  }
  return std::sqrt(difference / size);
}

TEST_CASE("with synchronised statistics workers train as one, but for the order of sums",
          "[fast]") {
  Numerics plain;
  Synchronised synchronised;
  const auto whole = trained(1, 1, plain);
  // Ten steps of some roundings of 2^-24 each, which training amplifies a little.
  constexpr double kOrder = 0x1p-17;
  for (const std::int64_t workers : {2, 4}) {
    CHECK(distance(whole, trained(workers, 1, synchronised)) < kOrder);
    CHECK(distance(whole, trained(workers, 1, plain)) > 100 * kOrder);
  }
  CHECK(trained(1, 1, synchronised) == whole);
  // Micro-batches of one number share statistics: as the whole of half the batch twice.
  CHECK(distance(trained(1, 2, plain), trained(2, 2, synchronised)) > 100 * kOrder);
  // A last batch with fewer parts than workers x micro-batches: 640 = 4 x 150 + 40.
  CHECK(trained(3, 2, synchronised, 150) == trained(3, 2, synchronised, 150));
}

class Ghosts : public Numerics {
 public:
  explicit Ghosts(std::int64_t samples) : samples_(samples) {}
  NormRule norm(const Step&, std::string_view) override { return {.ghost_batch = samples_}; }

 private:
  std::int64_t samples_;
};

TEST_CASE("ghost batches train as workers with statistics of their own, but for the order of sums",
          "[fast]") {
  Numerics plain;
  constexpr double kOrder = 0x1p-17;  // as above
  for (const std::int64_t workers : {2, 4}) {
    Ghosts ghosts(64 / workers);
    const auto values = trained(1, 1, ghosts);
    CHECK(distance(values, trained(workers, 1, plain)) < kOrder);
    CHECK(distance(values, trained(1, 1, plain)) > 100 * kOrder);
  }
  Ghosts whole(64);
  CHECK(trained(1, 1, whole) == trained(1, 1, plain));
}

TEST_CASE("synchronised statistics contradict weights of one's own", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  Graph graph = test::stateful_net(data);
  Synchronised numerics;
  TrainOptions options;
  options.epochs = 1;
  options.workers = 2;
  options.local_steps = 2;
  CHECK_THROWS_WITH(train(graph, data, options, numerics),
                    Catch::Contains("synchronised statistics contradict local steps"));
}

}  // namespace
}  // namespace numemu::net::lockstep_test
