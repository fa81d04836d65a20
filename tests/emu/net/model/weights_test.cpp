// Weights from whichever file, into a graph and out of it; the network before tuning.
#include "emu/net/model/weights.hpp"

#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"
#include "tests/emu/net/model/zip_bytes.hpp"
#include "tests/files.hpp"

namespace numemu::net::weights_test {
namespace {

using numemu::test::message_of;
using numemu::test::TemporaryFolder;
using numemu::test::write_file;

TEST_CASE("safetensors and npz are told apart by their bytes", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.bin";
  Checkpoint checkpoint;
  checkpoint.tensors.push_back({"w", Tensor({2}, 1.5f)});
  write_safetensors(path, checkpoint);
  CHECK(read_weights(path).tensors.at(0).name == "w");
  CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{1.5f, 1.5f});
  write_file(path, test::zip({{"v.npy", test::npy(ArrayType::float32, {1}, test::packed(2.5f))}}));
  CHECK(read_weights(path).tensors.at(0).name == "v");
  CHECK(read_weights(path).tensors.at(0).value.data == std::vector<float>{2.5f});
  write_file(path, test::zip({}));
  CHECK(read_weights(path).tensors.empty());
}

TEST_CASE("files that are neither", "[fast]") {
  const TemporaryFolder folder;
  const std::string path = folder / "weights.npz";
  const std::string neither =
      path +
      ": byte 0: expected safetensors (a length and a JSON header), GGUF or .npz (a zip archive), "
      "found none of them";
  for (const std::string file : {"", "PK", "\x08\x07\x12\x07pytorch", "\x93NUMPY\x01"}) {
    write_file(path, file);
    CHECK(message_of([&] { read_weights(path); }) == neither);
  }
  write_file(path, "PK\3\4");
  CHECK(message_of([&] { read_weights(path); }).starts_with(path + ": expected a zip archive"));
  CHECK(message_of([&] { read_weights(folder / "none"); }) ==
        (folder / "none") + ": cannot open: No such file or directory");
}

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

Graph initialized(std::uint64_t seed) {
  Graph graph = build_net("mlp", {4, 4, 1}, 10);
  initialize(graph, seed);
  return graph;
}

TEST_CASE("a checkpoint keeps the network before tuning beside the tuned one", "[fast]") {
  const Graph before = initialized(7), tuned = initialized(8);
  Checkpoint checkpoint = parameters_of(tuned);
  CHECK_FALSE(has_tuned_from(checkpoint));
  add_tuned_from(checkpoint, before);
  CHECK(has_tuned_from(checkpoint));
  Graph one = initialized(1), other = initialized(2);
  load_parameters(one, checkpoint, "f");
  load_tuned_from(other, checkpoint, "f");
  for (std::size_t i = 0; i < one.parameters().size(); ++i) {
    CHECK(one.parameters()[i]->value.data == tuned.parameters()[i]->value.data);
    CHECK(other.parameters()[i]->value.data == before.parameters()[i]->value.data);
  }
  checkpoint.tensors.pop_back();
  CHECK(message_of([&] {
          load_tuned_from(other, checkpoint, "f");
        }).starts_with("f: expected a tensor "));
}

}  // namespace

}  // namespace numemu::net::weights_test
