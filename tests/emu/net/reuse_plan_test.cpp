// Memory of dead values: who takes it, and that the pass never holds more than its largest node.
#include <algorithm>
#include <map>
#include <set>

#include "emu/net/forward.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/memory_plan.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"

namespace numemu::net {
namespace {

/// A result of any size, with memory of its own while it runs.
class Sized final : public Op, public HoldsMemory {
 public:
  Sized(std::int64_t size, std::int64_t own) : size_(size), own_(own) {}
  std::string_view kind() const override { return "sized"; }
  Shape output_shape(std::span<const Shape> inputs) const override { return {inputs[0][0], size_}; }
  void forward(const OpCall&, std::span<const Tensor* const>, Tensor&) const override {}
  void backward(const OpCall&, std::span<const Tensor* const>, const Tensor*, const Tensor&,
                std::span<Tensor>, std::span<Tensor>, bool) const override {}
  OperatorMemory memory(std::span<const Shape>) const override { return {own_, 0, 0}; }

 private:
  std::int64_t size_, own_;
};

struct Planned {
  Graph graph;
  std::vector<Shape> shapes;
  std::vector<int> last;
  ReusePlan plan;
};

Graph graph_of_one() {
  Graph graph;
  graph.inputs = {{"input", {1}}};
  return graph;
}

Planned planned(Graph graph) {
  Planned p{.graph = std::move(graph), .shapes = {}, .last = {}, .plan = {}};
  const Shape input{1, 1};
  p.shapes = value_shapes(p.graph, {&input, 1});
  p.last = last_readers(p.graph);
  p.plan = plan_reuse(p.graph, p.shapes, p.last);
  return p;
}

std::unique_ptr<Op> sized(std::int64_t size, std::int64_t own = 0) {
  return std::make_unique<Sized>(size, own);
}

/// The elements alive at every node, each value counted with its own size, and what operators hold:
/// by definition.
std::vector<std::int64_t> alive(const Planned& p) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < static_cast<int>(p.graph.nodes.size()); ++i) {
    out.push_back(operator_memory(p.graph, static_cast<std::size_t>(i), p.shapes).forward);
    for (int j = 0; j <= i; ++j) {
      const auto own = static_cast<std::size_t>(p.graph.value_of(static_cast<std::size_t>(j)));
      const bool overwritten =
          p.last[own] == i && p.plan.places[static_cast<std::size_t>(i)].in_place &&
          p.graph.nodes[static_cast<std::size_t>(i)].inputs[0] == static_cast<int>(own);
      if ((j == i || p.last[own] >= i) && !overwritten) out.back() += element_count(p.shapes[own]);
    }
  }
  return out;
}

/// Carries a plan out on sizes: the elements in memory at every node.
std::vector<std::int64_t> held(const Planned& p) {
  std::map<int, std::int64_t> blocks;  // capacity, by value
  std::set<int> dead;
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < p.graph.nodes.size(); ++i) {
    const int own = p.graph.value_of(i);
    const std::int64_t size = element_count(p.shapes[static_cast<std::size_t>(own)]);
    for (const int v : p.plan.drops[i]) {
      REQUIRE(dead.erase(v) == 1);
      REQUIRE(blocks.erase(v) == 1);
    }
    const ReusePlace place = p.plan.places[i];
    blocks[own] = size;
    if (place.from != ReusePlace::kFresh) {
      REQUIRE((place.in_place || dead.erase(place.from) == 1));
      REQUIRE(blocks.at(place.from) >= size);
      blocks[own] = blocks.at(place.from);
      REQUIRE(blocks.erase(place.from) == 1);
    }
    out.push_back(operator_memory(p.graph, i, p.shapes).forward);
    for (const auto& [v, capacity] : blocks) out.back() += capacity;
    for (const auto& [v, capacity] : blocks) {
      const int last = p.last[static_cast<std::size_t>(v)];
      if (last == static_cast<int>(i) || (v == own && last < 0)) dead.insert(v);
    }
  }
  return out;
}

TEST_CASE("the memory of a dead value serves a later result that fits", "[fast]") {
  Graph graph = graph_of_one();
  graph.add("a", sized(50));
  graph.add("b", sized(60));
  graph.add("c", sized(50));
  graph.add("d", sized(55));
  const Planned p = planned(std::move(graph));
  CHECK(p.plan.places[2].from == 1);  // a
  CHECK(p.plan.places[3].from == 2);  // b, with 5 elements more than it needs
  CHECK(held(p) == std::vector<std::int64_t>{50, 110, 110, 110});
}

TEST_CASE("memory that would raise the peak goes back before the node", "[fast]") {
  Graph graph = graph_of_one();
  graph.add("a", sized(90));
  graph.add("b", sized(10));
  graph.add("c", sized(100));
  graph.add("relu", std::make_unique<Pointwise>("relu"));
  graph.add("d", sized(5, 5));
  const Planned p = planned(std::move(graph));
  CHECK(p.plan.drops[2] == std::vector<int>{1});
  CHECK(p.plan.places[3].in_place);
  CHECK(p.plan.places[4].from == ReusePlace::kFresh);  // b was dropped, too
  CHECK(held(p) == std::vector<std::int64_t>{90, 100, 110, 110, 110});
}

TEST_CASE("memory serves no result that fills less than half, and goes back behind the last",
          "[fast]") {
  Graph graph = graph_of_one();
  graph.add("a", sized(100));
  graph.add("b", sized(100));
  graph.add("c", sized(50));
  graph.add("d", sized(49));
  graph.add("e", sized(24));
  graph.add("f", sized(24));
  const Planned p = planned(std::move(graph));
  CHECK(p.plan.places[2].from == 1);                   // half of a
  CHECK(p.plan.places[3].from == ReusePlace::kFresh);  // not b
  CHECK(p.plan.drops[3] == std::vector<int>{2});       // nothing behind d fills half of b
  CHECK(held(p).back() < 100);
}

TEST_CASE("random networks never hold more than their largest node needs", "[fast]") {
  int reused = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const RandomSource source{seed, Stream::vectors, 1, 0};
    std::uint64_t drawn = 0;
    const auto draw = [&](int n) { return static_cast<int>(source.bits(drawn++, 16)) % n; };
    Graph graph = graph_of_one();
    for (int i = 0; i < 30; ++i) {
      const int count = static_cast<int>(graph.value_count());
      std::vector<int> reads{std::max(0, count - 1 - draw(3))};
      if (draw(3) == 0) reads.push_back(draw(count));
      const std::string name = "n" + std::to_string(i);
      if (draw(4) == 0) {
        graph.add(name, std::make_unique<Pointwise>("relu"), {reads[0]});
      } else {
        graph.add(name, sized(1 + draw(4) * 20 + draw(3), draw(4) == 0 ? draw(40) : 0), reads);
      }
    }
    const Planned p = planned(std::move(graph));
    const std::vector<std::int64_t> needed = alive(p), taken = held(p);
    CHECK(*std::ranges::max_element(taken) == *std::ranges::max_element(needed));
    for (const ReusePlace& place : p.plan.places)
      reused += place.from != ReusePlace::kFresh && !place.in_place;
  }
  CHECK(reused > 200);
}

}  // namespace
}  // namespace numemu::net
