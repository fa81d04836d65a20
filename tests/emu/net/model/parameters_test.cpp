// Loading a checkpoint into a graph: what fits, and each way not to fit.
#include "emu/net/model/safetensors.hpp"
#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;

Graph fresh() { return build_net("mlp", {4, 4, 1}, 10); }

TEST_CASE("parameters go through a file unchanged", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "mlp.safetensors";
  Graph trained = fresh(), loaded = fresh();
  initialize(trained, 7);
  write_safetensors(path, parameters_of(trained));
  load_parameters(loaded, read_safetensors(path), path);
  const auto want = trained.parameters(), got = loaded.parameters();
  REQUIRE(want.size() == got.size());
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i]->value.data == want[i]->value.data);
}

TEST_CASE("a checkpoint that does not fit is named and changes nothing", "[fast]") {
  Graph graph = fresh();
  initialize(graph, 7);
  const Checkpoint good = parameters_of(graph);
  REQUIRE(good.tensors.size() >= 2);
  const std::string first = good.tensors[0].name;
  const auto message = [&](const Checkpoint& checkpoint) {
    Graph target = fresh();
    const std::string text = message_of([&] { load_parameters(target, checkpoint, "f"); });
    const Checkpoint after = parameters_of(target), before = parameters_of(fresh());
    for (std::size_t i = 0; i < after.tensors.size(); ++i)
      CHECK(after.tensors[i].value.data == before.tensors[i].value.data);
    return text;
  };
  Checkpoint bad = good;
  bad.tensors.erase(bad.tensors.begin());
  CHECK(message(bad) == "f: expected a tensor '" + first + "' of the network mlp, found none");
  bad = good;
  bad.tensors.push_back({first + "x", Tensor({1})});
  CHECK(message(bad) == "f: tensor '" + first +
                            "x': expected a parameter of the network mlp; did you mean '" + first +
                            "'?");
  bad = good;
  bad.tensors[0].value = Tensor({3, 5});
  CHECK(message(bad) == "f: tensor '" + first + "': expected shape " +
                            to_string(good.tensors[0].value.shape) +
                            " of the network mlp, found [3, 5]");
}

}  // namespace
}  // namespace numemu::net
