// Work that is told rises to its total, phase by phase.
#include "experiments/engine/work.hpp"

#include <vector>

#include "experiments/engine/run_point.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

namespace work_test {

using namespace numemu::experiments;

namespace {

struct Told {
  std::vector<std::string> phases;
  double done = 0, total = 0;
  bool rises = true;
  OnWork hook() {
    return [this](const WorkState& at) {
      if (phases.empty() || phases.back() != at.phase) phases.emplace_back(at.phase);
      rises = rises && at.done >= done && at.done <= at.total;
      done = at.done;
      total = at.total;
    };
  }
};

}  // namespace

TEST_CASE("a workbench and a point tell their phases up to the end", "[fast]") {
  Told shared, point, measured;
  Workbench bench(testing::small_dataset(), testing::small_net(), 100, {"", false, shared.hook()});
  CHECK(shared.phases == std::vector<std::string>{"float32 reference", "float32 baseline"});
  CHECK(shared.done == shared.total);
  CHECK(shared.rises);

  SweepConfig config = parse_sweep(R"({"numemu_sweep": 1, "grid":
      {"roles.weight.format": ["int4"], "roles.activation.format": ["int8"]}})",
                                   "s.json");
  run_point(config.points[0], bench, point.hook());
  CHECK(point.phases == std::vector<std::string>{"calibration", "predictions", "predicted accuracy",
                                                 "noise on the reference", "evaluation"});
  CHECK(point.done == Approx(point.total));
  CHECK(point.rises);
  turn_predictions_off(config);
  run_point(config.points[0], bench, measured.hook());
  CHECK(measured.phases ==
        std::vector<std::string>{"calibration", "noise on the reference", "evaluation"});
  CHECK(measured.done == Approx(measured.total));

  Told weights;
  config =
      parse_sweep(R"({"numemu_sweep": 1, "grid": {"roles.weight.format": ["int4"]}})", "s.json");
  run_point(config.points[0], bench, weights.hook());
  CHECK(weights.phases == std::vector<std::string>{"predictions", "predicted accuracy",
                                                   "noise on the reference", "evaluation"});
}

TEST_CASE("a phase that is skipped is free", "[fast]") {
  double done = 0, free = 0;
  const OnWork told = [&](const WorkState& at) {
    done = at.done;
    free = at.free;
  };
  Work work(told, 10, 2);
  work.begin("first", 3);
  CHECK(done == 2);
  work.skip();
  CHECK(done == 5);
  CHECK(free == 3);
  work.begin("second", 5);
  work.add(1, 4);
  CHECK(done == Approx(6.25));
  work.add(9, 4);  // more than announced
  CHECK(done == 10);
}

}  // namespace work_test
