// Plans against brute force over every partition, costs of a network by hand, and plans in the
// event simulation.
#include "experiments/delayed_weights/partition.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "emu/net/forward.hpp"
#include "emu/net/kept_bytes.hpp"
#include "emu/net/nets.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace partition_test {

using namespace numemu;
using namespace numemu::experiments::delayed_weights;
using numemu::test::message_of;

namespace {

struct Cut {
  std::size_t first, end;
  std::int64_t replicas;
  bool recomputes;
};

/// Whether a partition fits at a period, from the definitions alone.
bool fits(const std::vector<LayerCost>& layers, const Machine& m, const std::vector<Cut>& cuts,
          Ticks period) {
  std::int64_t in_flight = 0;  // over all replicas of the stage
  for (std::size_t s = cuts.size(); s-- > 0;) {
    const auto& [first, end, replicas, recomputes] = cuts[s];
    const auto sum = [&, first = first, end = end](std::int64_t LayerCost::*cost) {
      std::int64_t total = 0;
      for (std::size_t i = first; i < end; ++i) total += layers[i].*cost;
      return total;
    };
    const Ticks passes = m.multiply_add * ((recomputes ? 2 : 1) * sum(&LayerCost::forward) +
                                           sum(&LayerCost::backward));
    const Ticks before = first == 0 ? 0 : m.link_byte * layers[first].inputs;
    const Ticks behind = end == layers.size() ? 0 : m.link_byte * layers[end].inputs;
    for (const Ticks time : {passes, before, behind})
      if (time > replicas * period) return false;
    const std::int64_t next = in_flight;
    for (in_flight = replicas; (in_flight - next) * period < passes + 2 * behind;)
      in_flight += replicas;
    const std::int64_t each = in_flight / replicas, kept = sum(&LayerCost::kept);
    const std::int64_t activations =
        each * layers[first].inputs + (recomputes ? kept : each * kept);
    if (m.copies * sum(&LayerCost::parameters) + activations > m.memory) return false;
    // All gradients pass a ring twice, less a share.
    const Ticks ring = 2 * (replicas - 1) * m.reduce_byte * sum(&LayerCost::parameters);
    if ((m.micro_batches + 1 - in_flight) * period * replicas < ring) return false;
    if (in_flight > m.micro_batches + 1 || replicas > m.micro_batches) return false;
  }
  return true;
}

/// The least period of all partitions, over up to m.devices devices; 0: none.
Ticks brute_force(const std::vector<LayerCost>& layers, const Machine& m, Ticks most) {
  Ticks best = 0;
  std::vector<Cut> cuts;
  const std::function<void(std::size_t, std::int64_t)> extend = [&](std::size_t first,
                                                                    std::int64_t devices) {
    if (first == layers.size()) {
      for (Ticks period = 1; period <= (best == 0 ? most : best - 1); ++period) {
        if (fits(layers, m, cuts, period)) best = period;
      }
      return;
    }
    for (std::size_t end = first + 1; end <= layers.size(); ++end) {
      for (std::int64_t replicas = 1; replicas <= devices; ++replicas) {
        for (const bool recomputes : {false, true}) {
          cuts.push_back({first, end, replicas, recomputes});
          extend(end, devices - replicas);
          cuts.pop_back();
        }
      }
    }
  };
  extend(0, m.devices);
  return best;
}

}  // namespace

TEST_CASE("delayed-weights: the planner's period is the least of all partitions", "[fast]") {
  int planned = 0, recomputed = 0, replicated = 0, refused = 0;
  for (std::uint64_t key = 0; key < 400; ++key) {
    const RandomSource random{.seed = key};
    std::uint64_t counter = 0;
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      const std::uint64_t bits = random.bits(counter++, 32);
      return low + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(high - low + 1));
    };
    std::vector<LayerCost> layers(static_cast<std::size_t>(draw(1, 4)));
    for (LayerCost& layer : layers) {
      layer.forward = draw(0, 9);
      layer.backward = draw(0, 15);
      layer.parameters = draw(0, 8);
      layer.kept = draw(0, 12);
      layer.inputs = draw(0, 9);
    }
    Machine machine;
    machine.devices = draw(1, 4);
    machine.memory = draw(10, 120);
    machine.multiply_add = draw(1, 2);
    machine.link_byte = draw(0, 2);
    machine.reduce_byte = draw(0, 3);
    machine.micro_batches = draw(1, 8);
    machine.copies = draw(1, 4);
    Ticks most = 1;
    for (const LayerCost& layer : layers)
      most += 2 * (2 * layer.forward + layer.backward) + 4 * layer.inputs + 6 * layer.parameters;
    CAPTURE(key);
    const std::optional<Plan> plan = plan_stages(layers, machine);
    CHECK((plan ? plan->period : 0) == brute_force(layers, machine, most));
    if (!plan) {
      ++refused;
      continue;
    }
    ++planned;
    std::vector<Cut> cuts;
    for (const PlannedStage& stage : plan->stages) {
      cuts.push_back({stage.first, stage.end, stage.replicas, stage.recomputes});
      CHECK(stage.bytes <= machine.memory);
      recomputed += stage.recomputes;
      replicated += stage.replicas > 1;
    }
    CHECK(fits(layers, machine, cuts, plan->period));
    CHECK(plan->devices() <= machine.devices);
    // As good in the event simulation.
    const Pipeline pipeline = plan->pipeline(machine.micro_batches, 6);
    const Simulated run = simulate(pipeline);
    CHECK(run.makespan <= (pipeline.count() + plan->in_flight() - 1) * plan->period);
    for (std::size_t s = 0; s < plan->stages.size(); ++s) {
      CHECK(run.stages[s].held <= plan->stages[s].in_flight);
      CHECK(run.stages[s].versions <= 2);
    }
  }
  CHECK(planned > 100);
  CHECK(refused > 20);
  CHECK(recomputed > 10);
  CHECK(replicated > 20);
}

TEST_CASE("delayed-weights: costs of lenet's layers", "[fast]") {
  net::Graph graph = net::build_net("lenet", net::Shape{28, 28, 1}, 10);
  net::initialize(graph, 0);
  constexpr std::int64_t kSamples = 3;
  const std::vector<LayerCost> layers = layer_costs(graph, kSamples);
  const struct {
    const char* name;
    std::int64_t forward, parameters, inputs;
  } expected[] = {{"conv1", 28 * 28 * 6 * 25, 6 * 26, 28 * 28},
                  {"conv2", 10 * 10 * 16 * 150, 16 * 151, 14 * 14 * 6},
                  {"fc1", 400 * 120, 401 * 120, 400},
                  {"fc2", 120 * 84, 121 * 84, 120},
                  {"fc3", 84 * 10, 85 * 10, 84}};
  REQUIRE(layers.size() == 5);
  std::int64_t kept = 4 * kSamples * expected[0].inputs;  // the network's input is read by conv1
  for (std::size_t i = 0; i < layers.size(); ++i) {
    INFO(layers[i].name);
    CHECK(layers[i].name == expected[i].name);
    CHECK(layers[i].forward == kSamples * expected[i].forward);
    CHECK(layers[i].backward == (i == 0 ? 1 : 2) * layers[i].forward);
    CHECK(layers[i].parameters == 4 * expected[i].parameters);
    CHECK(layers[i].inputs == 4 * kSamples * expected[i].inputs);
    kept += layers[i].kept;
  }
  // What a training step keeps.
  net::Numerics inner;
  net::KeptBytes counted(inner);
  const std::vector<std::int64_t> samples(kSamples);
  const net::Step step{.phase = net::Phase::training, .samples = &samples};
  counted.begin_step(step);
  net::forward_training(graph, net::Tensor({kSamples, 28, 28, 1}), counted, step);
  counted.end_epoch({});
  REQUIRE(counted.of_epoch(0) != nullptr);
  CHECK(kept == counted.of_epoch(0)->bytes);
}

TEST_CASE("delayed-weights: a cut through a residual block sends both branches", "[fast]") {
  net::Graph graph = net::build_net("resnet20", net::Shape{32, 32, 3}, 10);
  net::initialize(graph, 0);
  const std::vector<LayerCost> layers = layer_costs(graph, 1);
  const auto inputs = [&](const std::string& name) {
    const auto layer = std::find_if(layers.begin(), layers.end(),
                                    [&](const LayerCost& l) { return l.name == name; });
    REQUIRE(layer != layers.end());
    return layer->inputs;
  };
  CHECK(layers.size() == 20);
  CHECK(layers[1].inputs == 4 * 32 * 32 * 16);      // before a block
  CHECK(layers[2].inputs == 2 * 4 * 32 * 32 * 16);  // inside
  CHECK(inputs(layers.back().name) == 4 * 64);
}

TEST_CASE("delayed-weights: partitions that cannot be computed are refused", "[fast]") {
  const auto message = [](const std::vector<LayerCost>& layers, const Machine& machine) {
    return message_of([&] { plan_stages(layers, machine); });
  };
  const LayerCost layer{.forward = 1000, .backward = 2000};
  CHECK_THAT(message({}, {}), Catch::Contains("expected layers"));
  CHECK_THAT(message({layer}, {.devices = 0}), Catch::Contains("at least one device"));
  CHECK_THAT(message({layer}, {.multiply_add = Ticks{1} << 60}), Catch::Contains("2^60"));
  CHECK_FALSE(plan_stages({{.parameters = 1}}, {.memory = 3}).has_value());
}

}  // namespace partition_test
