// Simulated pipelines: closed forms of equal stages, a schedule by hand, links and replicas at the
// planned period, versions, and what cannot run.
#include "experiments/delayed_weights/pipeline.hpp"

#include <algorithm>

#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace pipeline_test {

using namespace numemu;
using namespace numemu::experiments::delayed_weights;
using numemu::test::message_of;

namespace {

/// Stages of one replica with as many micro-batches in flight as there are stages from each on.
Pipeline equal(const EqualStages& of, const Stage& stage) {
  Pipeline p{of.schedule, {}, of.micro_batches, of.batches};
  p.stages.assign(static_cast<std::size_t>(of.stages), stage);
  for (std::size_t s = 0; s < p.stages.size(); ++s)
    p.stages[s].in_flight = static_cast<std::int64_t>(p.stages.size() - s);
  return p;
}

}  // namespace

TEST_CASE("delayed-weights: equal stages take the time of the closed forms", "[fast]") {
  for (const auto schedule :
       {Schedule::gpipe, Schedule::flush_1f1b, Schedule::two_bw, Schedule::pipedream}) {
    for (const std::int64_t d : {1, 2, 4, 7}) {
      for (const std::int64_t m : {d, 2 * d, 3 * d + 1}) {
        const std::int64_t batch = schedule == Schedule::pipedream ? 1 : m;
        const EqualStages of{schedule, d, batch, 6 * m / batch};
        CAPTURE(to_string(schedule), d, m);
        const Simulated run = simulate(equal(of, {.forward = 10, .backward = 23}));
        CHECK(run.makespan == 33 * of.passes());
        CHECK(run.bubble == Approx(of.bubble()));
        CHECK(run.stages[0].held == of.held());
        CHECK(run.stages[0].versions == of.versions());
        for (std::size_t s = 0; s < run.stages.size(); ++s) {
          CHECK(run.stages[s].busy == 33 * 6 * m);
          // Later stages hold fewer micro-batches, and PipeDream's fewer versions.
          const std::int64_t from = d - static_cast<std::int64_t>(s);
          if (schedule == Schedule::pipedream) CHECK(run.stages[s].versions == from);
          if (schedule != Schedule::gpipe) CHECK(run.stages[s].held == from);
        }
      }
    }
  }
}

TEST_CASE("delayed-weights: a pipeline of two unequal stages by hand", "[fast]") {
  // Forward at 0-1 and 1-2, over the link at 3 and 5; the second stage computes at 3-5-9 and
  // 9-11-15; gradients are back at 11 and 17.
  const Pipeline p{
      Schedule::flush_1f1b,
      {{.forward = 1, .backward = 2, .link = 2, .in_flight = 2}, {.forward = 2, .backward = 4}},
      2,
      1};
  const Simulated run = simulate(p);
  CHECK(run.makespan == 19);
  CHECK(run.bubble == Approx(1 - 18.0 / 38));
  // GPipe's second stage: 3-5-7, then backward at 11 and 15, back at 13 and 17.
  Pipeline gpipe = p;
  gpipe.schedule = Schedule::gpipe;
  CHECK(simulate(gpipe).makespan == 19);
}

TEST_CASE("delayed-weights: links slow one micro-batch per stage, and more in flight hide them",
          "[fast]") {
  for (const std::int64_t d : {2, 3, 5}) {
    Pipeline p =
        equal({Schedule::two_bw, d, 40, 20}, {.forward = 100, .backward = 200, .link = 60});
    CAPTURE(d);
    // d micro-batches share a round trip.
    const double trip = 300 + 120 * static_cast<double>(d - 1) / static_cast<double>(d);
    CHECK(simulate(p).period(p) == Approx(trip).epsilon(1e-3));
    set_in_flight(p.stages, 300);
    CHECK(simulate(p).period(p) == 300);
  }
}

TEST_CASE("delayed-weights: the periodic schedule bounds unequal pipelines", "[fast]") {
  for (std::uint64_t key = 0; key < 60; ++key) {
    const RandomSource random{.seed = key};
    const auto draw = [&](std::uint64_t counter, std::int64_t most) {
      return static_cast<std::int64_t>(random.bits(counter, 32) %
                                       static_cast<std::uint64_t>(most + 1));
    };
    Pipeline p{Schedule::two_bw, {}, 60, 20};
    Ticks period = 1;
    const auto least = [&](Ticks time, std::int64_t replicas) {
      period = std::max(period, (time + replicas - 1) / replicas);
    };
    for (std::uint64_t s = 0; s < 2 + key % 4; ++s) {
      const Stage stage{.forward = 1 + draw(8 * s, 50),
                        .backward = 1 + draw(8 * s + 1, 90),
                        .link = draw(8 * s + 2, 70),
                        .reduce = draw(8 * s + 3, 300),
                        .replicas = 1 + draw(8 * s + 4, 3)};
      least(stage.forward + stage.backward, stage.replicas);
      if (!p.stages.empty())
        least(p.stages.back().link, std::min(stage.replicas, p.stages.back().replicas));
      p.stages.push_back(stage);
    }
    p.stages.back().link = 0;
    const std::int64_t first = set_in_flight(p.stages, period);
    // Sums that 2BW hides: ready before the batch after next begins.
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      const std::int64_t held = p.stages[s].in_flight * p.stages[s].replicas;
      REQUIRE((p.micro_batches + 1 - held) * period >= p.stages[s].reduce);
    }
    const Simulated run = simulate(p);
    CAPTURE(key, period, first);
    CHECK(run.makespan <= (p.count() + first - 1) * period);
    CHECK(run.makespan > p.count() * (period - 1));
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      CHECK(run.stages[s].held <= p.stages[s].in_flight);
      CHECK(run.stages[s].versions <= 2);
    }
  }
}

TEST_CASE("delayed-weights: replicas share micro-batches, and sums delay the next but one batch",
          "[fast]") {
  Pipeline p{Schedule::two_bw,
             {{.forward = 10, .backward = 20, .replicas = 3}, {.forward = 4, .backward = 6}},
             12,
             10};
  CHECK(set_in_flight(p.stages, 10) == 6);
  CHECK(simulate(p).period(p) == 10);
  p.stages[0].reduce = 70;  // (12 + 1 - 6) x 10
  CHECK(simulate(p).period(p) == 10);
  p.stages[0].reduce = 150;
  CHECK(simulate(p).period(p) > 10);
}

TEST_CASE("delayed-weights: pipelines that cannot run are refused", "[fast]") {
  const auto message = [](const Pipeline& p) { return message_of([&] { simulate(p); }); };
  CHECK_THAT(message({}), Catch::Contains("expected stages"));
  CHECK_THAT(message({Schedule::two_bw, {{}, {.in_flight = 2}}, 4, 2}),
             Catch::Contains("waits for ever"));
  // Three micro-batches of one each would need the weights of an update that none of them made.
  CHECK_THAT(message({Schedule::two_bw, {{.in_flight = 3}}, 1, 9}),
             Catch::Contains("waits for ever"));
  CHECK(message({Schedule::two_bw, {{.in_flight = 2}}, 1, 9}).empty());
  CHECK_THAT(message({Schedule::gpipe, {{.replicas = 3}}, 2, 1}), Catch::Contains("replicas"));
  CHECK_THAT(message({Schedule::gpipe, {{.forward = -1}}, 2, 1}), Catch::Contains("at least 0"));
  CHECK_THAT(message({Schedule::gpipe, {{}}, 100'000'000, 100'000'000}),
             Catch::Contains("at most"));
}

}  // namespace pipeline_test
