// Whatever a run reads of its network, another is another network.
#include <set>

#include "emu/net/model/safetensors.hpp"
#include "emu/net/model/weights.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/workbench.hpp"
#include "policies/recipe/checkpoint.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"
#include "tests/files.hpp"

using namespace numemu;
using namespace numemu::experiments;

namespace {

/// What a checkpoint is made of.
struct Parts {
  net::Graph graph = testing::small_net().graph;
  std::optional<net::Graph> before = {};
  policies::FixedRanges ranges = {{"fc1", {{}, policies::ValueRange{-1, 1}}}};
  std::vector<std::string> metadata = {};  ///< keys that rows have notes of
};

/// Loaded as commands do.
TrainedNet loaded(const Parts& parts, const std::string& path) {
  net::Checkpoint checkpoint = net::parameters_of(parts.graph);
  checkpoint.metadata = {{"net", parts.graph.name}};
  for (const std::string& key : parts.metadata) checkpoint.metadata.emplace_back(key, "{}");
  policies::add_ranges(checkpoint, parts.ranges);
  if (parts.before) net::add_tuned_from(checkpoint, *parts.before);
  net::write_safetensors(path, checkpoint);
  return load_trained_net(path, testing::small_dataset(), {});
}

}  // namespace

TEST_CASE("each content of a checkpoint gives rows, trials and states another key", "[fast]") {
  const test::TemporaryFolder folder;
  const auto key_of = [&](const auto& change, const std::string& file = "x.safetensors") {
    Parts parts;
    change(parts);
    const TrainedNet trained = loaded(parts, folder / file);
    Json point = {{"part", "test"}};
    identify(point, trained);
    const Point row = parse_sweep(R"({"numemu_sweep": 1})", "s.json").points[0];
    CHECK(row_key(identify(row, testing::small_dataset(), trained, 10)) ==
          row_key(identify(row, testing::small_dataset(), trained, 10)));
    return row_key(point) + row_key(identify(row, testing::small_dataset(), trained, 10));
  };
  const auto same = [](Parts&) {};
  const std::string key = key_of(same);
  CHECK(key_of(same, "moved.safetensors") == key);
  std::set<std::string> keys = {key};
  std::size_t changes = 1;
  const auto changed = [&](const auto& change) {
    keys.insert(key_of(change));
    CHECK(keys.size() == ++changes);
  };
  changed([](Parts& p) { p.graph.parameters()[0]->value.data[7] += 1; });
  changed([](Parts& p) { p.ranges["fc1"].activation->high = 2; });
  changed([](Parts& p) { p.ranges["fc1"].weight = {{-1, 1}}; });
  changed([](Parts& p) { p.ranges.clear(); });
  changed([](Parts& p) { p.before = testing::small_net().graph; });
  changed([](Parts& p) {
    p.before = testing::small_net().graph;
    p.before->parameters()[0]->value.data[7] += 1;
  });
  changed([](Parts& p) { p.metadata = {"training", "recipe"}; });
  // Graphs of two ONNX files with the same weights.
  TrainedNet first = loaded({}, folder / "x.safetensors"),
             second = loaded({}, folder / "y.safetensors");
  first.source = "0123456789abcdef0";
  second.source = "1123456789abcdef0";
  CHECK(run_identity(first) != run_identity(second));
}
