// The network before tuning: beside the tuned one in a checkpoint, and where it is incomplete.
#include "emu/net/model/tuned_from.hpp"

#include "emu/net/nets.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/data/files.hpp"

namespace numemu::net {
namespace {

using numemu::test::message_of;

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
}  // namespace numemu::net
