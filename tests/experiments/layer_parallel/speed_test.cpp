// Stages that wait for their neighbours: by hand, and against the period of the slowest cycle.
#include "experiments/layer_parallel/training.hpp"
#include "tests/catch.hpp"

namespace numemu::speed_test {

using experiments::delayed_weights::Stage;
using experiments::layer_parallel::Rounds;
using experiments::layer_parallel::simulated_time;

TEST_CASE("speed: equal stages without links take one stage's time for a round", "[fast]") {
  Rounds rounds;
  for (int k = 0; k < 4; ++k) rounds.stages.push_back({.forward = 1, .backward = 2});
  CHECK(rounds.serial() == 12);
  CHECK(rounds.period() == 3);
  CHECK(rounds.speed_up() == 4);
  CHECK(simulated_time(rounds, 10) == 30);
  rounds.serial_every = 2;  // 3 and 12 in turn
  CHECK(rounds.step_time() == 7.5);
  CHECK(simulated_time(rounds, 2) == 15);
}

TEST_CASE("speed: the slowest cycle of waits is the period", "[fast]") {
  Rounds rounds;
  rounds.stages = {{.forward = 2, .backward = 3, .link = 4},
                   {.forward = 1, .backward = 1, .link = 1},
                   {.forward = 3, .backward = 3}};
  CHECK(rounds.period() == 7.5);  // (5 + 2) / 2 + 4
  constexpr std::int64_t kSteps = 1000;
  CHECK(static_cast<double>(simulated_time(rounds, kSteps)) / kSteps == Approx(7.5).epsilon(0.002));
  rounds.rounds = 3;
  CHECK(static_cast<double>(simulated_time(rounds, kSteps)) / kSteps ==
        Approx(22.5).epsilon(0.002));
}

}  // namespace numemu::speed_test
