// A run interrupted at random steps continues with the same bits; states of other runs are refused.
#include "emu/net/train/run_state.hpp"

#include <omp.h>

#include <algorithm>
#include <set>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/train/optimizer.hpp"
#include "emu/net/train/train.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/train/stateful.hpp"
#include "tests/emu/net/train/synthetic.hpp"
#include "tests/files.hpp"

namespace numemu::net::run_state_test {
namespace {

using numemu::test::message_of;
using numemu::test::read_file;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

struct Interrupted {};

/// One run in one folder, which may be stopped and started again.
struct Trial {
  const Dataset& data;
  TrainOptions options;
  RunFile file;
  std::string untrained = {};  ///< a parameter
  std::int64_t steps = 0;      ///< run by the last call
  std::vector<double> seen;    ///< losses of all steps of all calls, by step
  std::vector<EpochMetrics> history;

  Trial(const Dataset& set, std::string optimizer, std::string path)
      : data(set), options(test::stateful_options(optimizer)) {
    file.path = std::move(path);
    file.identity = {{"recipe", "of the test"}};
  }

  /// From the stored state if there is one, with fresh objects as a new process would have; stops
  /// after `stop` steps. Returns whether the run came to its end.
  bool run(std::int64_t stop = -1) {
    Graph graph = test::stateful_net(data);
    for (Parameter* parameter : graph.parameters())
      parameter->trained = parameter->trained && parameter->name != untrained;
    test::StatefulNumerics numerics;
    TrainHooks hooks;
    steps = 0;
    hooks.on_step = [&](std::int64_t step, std::int64_t, double loss) {
      seen.resize(std::max<std::size_t>(seen.size(), static_cast<std::size_t>(step) + 1));
      seen[static_cast<std::size_t>(step)] = loss;
      if (++steps == stop) throw Interrupted();
    };
    try {
      history = train(graph, data, options, numerics, hooks, file);
    } catch (const Interrupted&) {
      return false;
    }
    return true;
  }
};

TEST_CASE("a run stopped at random steps gives the bits of one that was not", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  for (const std::string optimizer : {"sgd", "adamw"}) {
    Trial whole(data, optimizer, folder / ("whole-" + optimizer));
    REQUIRE(whole.run());
    const RandomSource random{11, Stream::vectors, optimizer == "sgd" ? 1u : 2u, 0};
    for (const std::int64_t every : {0, 1, 3}) {
      Trial parts(data, optimizer, folder / ("parts-" + optimizer + std::to_string(every)));
      parts.file.every = every;
      std::uint64_t starts = 0;
      // With one state an epoch a stop must come later than an epoch to leave anything.
      const std::int64_t least = every == 0 ? 15 : every + 1;
      do {
        REQUIRE(starts < 100);
        omp_set_num_threads(1 + static_cast<int>(starts % 3));
      } while (
          !parts.run(least + static_cast<std::int64_t>(random.bits(100 * every + starts++, 3))));
      CHECK(starts > 1);
      INFO(optimizer << " every " << every << ", " << starts << " starts");
      CHECK(parts.seen == whole.seen);
      CHECK(read_file(parts.file.path) == read_file(whole.file.path));
      CHECK(parts.history.size() == whole.history.size());
    }
  }
  omp_set_num_threads(omp_get_num_procs());
}

TEST_CASE("a run with two objectives resumes with both states of its optimizer", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  const auto trial = [&](const std::string& name) {
    Trial made(data, "adam", folder / name);
    made.options.objectives = {"cross_entropy", "complement"};
    made.options.epochs = 1;
    made.file.every = 2;
    return made;
  };
  Trial whole = trial("whole"), parts = trial("parts");
  REQUIRE(whole.run());
  REQUIRE_FALSE(parts.run(5));
  REQUIRE(parts.run());
  CHECK(parts.seen == whole.seen);
  CHECK(read_file(parts.file.path) == read_file(whole.file.path));
}

TEST_CASE("parts of no bytes come back, whatever their order", "[fast]") {
  struct Parts final : Numerics {
    NamedState parts;
    void save_state(NamedState& state) const override { state = parts; }
    void load_state(const NamedState& state) override { parts = state; }
  };
  const TemporaryFolder folder;
  Graph graph = test::stateful_net(test::synthetic_dataset());
  const std::vector<Parameter*> parameters = graph.parameters();
  const auto optimizer = make_optimizer(
      TrainOptions(), std::vector<const Parameter*>(parameters.begin(), parameters.end()));
  Parts written, read;
  written.parts = {{"b", ""}, {"a", ""}, {"full", "x"}, {"d", ""}, {"c", ""}};
  RunState state;
  write_run_state(folder / "state", {}, {graph, *optimizer, written, state});
  REQUIRE(read_run_state(folder / "state", {}, {graph, *optimizer, read, state}));
  CHECK(read.parts == NamedState{{"a", ""}, {"b", ""}, {"full", "x"}, {"c", ""}, {"d", ""}});
}

TEST_CASE("the state holds everything, and a finished run is not run again", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  Trial trial(data, "adamw", folder / "state");
  REQUIRE(trial.run());
  CHECK(trial.steps > 14);
  std::set<std::string> names;
  const Checkpoint state = read_safetensors(trial.file.path, true);
  for (const NamedTensor& tensor : state.tensors) names.insert(tensor.name);
  for (const char* name :
       {"parameter/conv.weight", "parameter/norm.running_mean", "optimizer/conv.weight/first",
        "optimizer/fc.bias/second", "best/norm.running_variance"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
  CHECK(!names.contains("optimizer/norm.running_mean/first"));
  CHECK(state.bytes.size() == 2);
  const std::vector<EpochMetrics> before = trial.history;
  REQUIRE(trial.run());
  CHECK(trial.steps == 0);
  CHECK(trial.history.size() == before.size());
  trial.file.fresh = true;
  REQUIRE(trial.run());
  CHECK(trial.steps > 14);
}

TEST_CASE("the middle of another run is refused by what differs and its end is replaced",
          "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  Trial trial(data, "sgd", folder / "state");
  trial.file.every = 2;
  REQUIRE(!trial.run(5));
  const std::string bytes = read_file(trial.file.path);
  const auto refusal = [&](auto change) {
    Trial other(data, "sgd", trial.file.path);
    change(other);
    const std::string message = message_of([&] { other.run(); });
    const std::string way_out = "; use --fresh or --out " + folder.path() + "-2";
    CHECK(other.steps == 0);
    CHECK(read_file(trial.file.path) == bytes);
    CHECK_THAT(message, Catch::EndsWith(way_out));
    return message.substr(0, message.size() - std::min(message.size(), way_out.size()));
  };
  CHECK(refusal([](Trial& t) { t.options.learning_rate = 0.5; }) ==
        trial.file.path +
            ": the state of an unfinished run that differs: learning_rate was 0.01, is 0.5");
  CHECK_THAT(refusal([](Trial& t) { t.file.identity[0].second = "other"; }),
             Catch::EndsWith("recipe was of the test, is other"));
  CHECK_THAT(refusal([](Trial& t) { t.file.identity.clear(); }),
             Catch::EndsWith("recipe was of the test, now missing"));
  CHECK_THAT(refusal([](Trial& t) { t.file.identity.emplace_back("more", "1"); }),
             Catch::EndsWith("more was not there, is 1"));
  CHECK_THAT(refusal([](Trial& t) { t.untrained = "fc.bias"; }),
             Catch::Contains("network and first weights was "));
  Trial fresh(data, "sgd", trial.file.path);
  fresh.options.epochs = 1;
  fresh.file.fresh = true;
  REQUIRE(fresh.run());
  CHECK(fresh.steps == 14);
  REQUIRE(trial.run());  // over the end of another run
  CHECK(trial.steps > 14);
}

TEST_CASE("a damaged state is refused and changes nothing", "[fast]") {
  const Dataset data = test::synthetic_dataset();
  const TemporaryFolder folder;
  Trial trial(data, "adamw", folder / "state");
  trial.file.every = 2;
  REQUIRE(!trial.run(5));
  const Checkpoint good = read_safetensors(trial.file.path, true);
  const auto message = [&](auto change) {
    Checkpoint bad = good;
    change(bad);
    write_safetensors(trial.file.path, bad);
    return message_of([&] { trial.run(); });
  };
  const std::string start = trial.file.path + ": ";
  CHECK_THAT(message([](Checkpoint& c) { c.tensors.erase(c.tensors.begin()); }),
             Catch::StartsWith(start + "metadata: digest"));
  CHECK_THAT(message([](Checkpoint& c) { c.tensors[1].value = Tensor({1}); }),
             Catch::StartsWith(start + "metadata: digest"));
  CHECK_THAT(message([](Checkpoint& c) { c.tensors[0].value.data[0] += 1; }),
             Catch::StartsWith(start + "metadata: digest"));
  CHECK_THAT(message([](Checkpoint& c) { c.bytes[0].name = "odd"; }),
             Catch::StartsWith(start + "metadata: digest"));
  CHECK_THAT(message([](Checkpoint& c) { c.metadata.erase(c.metadata.begin()); }),
             Catch::StartsWith(start + "metadata: digest"));
  CHECK_THAT(message([](Checkpoint& c) { c.metadata[1].second = R"({"net": 1})"; }),
             Catch::StartsWith(start + "metadata: identity"));
  CHECK_THAT(message([](Checkpoint& c) { c.metadata[2].second = "{"; }),
             Catch::StartsWith(start + "metadata: run"));
  CHECK_THAT(message([](Checkpoint& c) { c.metadata[2].second = "{}"; }),
             Catch::StartsWith(start + "metadata: digest"));
  write_file(trial.file.path, read_file(trial.file.path).substr(0, 1000));
  CHECK_THROWS_AS(trial.run(), Error);
}

}  // namespace
}  // namespace numemu::net::run_state_test
