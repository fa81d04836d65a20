// The peak of a pass, against what passes hold; memory of dead values.
#include "emu/net/memory_plan.hpp"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "emu/net/data/samples.hpp"
#include "emu/net/forward.hpp"
#include "emu/net/memory.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/conv.hpp"
#include "emu/net/ops/linear.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/pool.hpp"
#include "emu/net/ops/views.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/memory_budget.hpp"

namespace numemu::net::memory_plan_test {
namespace {

using Catch::Contains;

bool fits(const Graph& graph, std::span<const Shape> inputs, Keeps keeps, std::int64_t elements) {
  const test::MemoryBudget budget(4 * elements);
  try {
    require_memory(graph, inputs, keeps);
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// The least number of elements that is enough.
std::int64_t needed(const Graph& graph, const Shape& input, Keeps keeps) {
  std::int64_t low = 0, high = std::int64_t{1} << 40;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(graph, {&input, 1}, keeps, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Graph graph_of(const Shape& input) {
  Graph graph;
  graph.name = "m";
  graph.inputs = {{"input", input}};
  return graph;
}

std::unique_ptr<Op> turn() {
  return std::make_unique<Transpose>(std::vector<std::int64_t>{0, 2, 1});
}

}  // namespace

TEST_CASE("values are counted while they live and their memory is used again", "[fast]") {
  Graph graph = graph_of({2, 5});
  graph.add("a", turn());
  CHECK(needed(graph, {3, 2, 5}, Keeps::nothing) == 30 + 30);
  graph.add("b", turn());
  CHECK(needed(graph, {3, 2, 5}, Keeps::nothing) == 30 + 30 + 30);
  graph.add("c", turn());  // in the memory of a
  CHECK(needed(graph, {3, 2, 5}, Keeps::nothing) == 30 + 30 + 30);
  graph.add("relu", std::make_unique<Pointwise>("relu"));  // over its input
  CHECK(needed(graph, {3, 2, 5}, Keeps::nothing) == 30 + 30 + 30);
  graph.add("wide", std::make_unique<Pad>(std::vector<std::int64_t>{0, 0, 0},
                                          std::vector<std::int64_t>{0, 0, 95}, 0.0f));
  CHECK(needed(graph, {3, 2, 5}, Keeps::nothing) == 30 + 30 + 3 * 5 * 97);
}

TEST_CASE("a product counts its codes and its parameters three times, training four", "[fast]") {
  Graph graph = graph_of({4});
  graph.add("fc", std::make_unique<Linear>(4, 6, false));
  const std::int64_t codes = 10 * 4 + 24 + 10 * 6;
  CHECK(needed(graph, {10, 4}, Keeps::nothing) == 3 * 24 + 40 + 60 + codes);
  CHECK(needed(graph, {10, 4}, Keeps::products) == 3 * 24 + 40 + 60 + codes + 40 + 60);
  // The input and its copy, the output, its copy and its gradient, the input's gradient.
  CHECK(needed(graph, {10, 4}, Keeps::for_backward) == 4 * 24 + 2 * 40 + 3 * 60 + 40 + codes);
}

TEST_CASE("a convolution counts the padded image that it reads", "[fast]") {
  Graph graph = graph_of({1, 1, 1});
  graph.add("conv",
            std::make_unique<Conv2d>(Conv2dOptions{.stride = 999, .pad = 499, .bias = false}));
  const std::int64_t padded = 999 * 999;
  CHECK(needed(graph, {1, 1, 1, 1}, Keeps::nothing) == 3 + 1 + 1 + padded + 1 + 3);
}

TEST_CASE("the gradient of average pooling counts a float64 image for each thread", "[fast]") {
  Graph graph = graph_of({4, 4, 1});
  graph.add("conv", std::make_unique<Conv2d>(Conv2dOptions{.out_channels = 8}));
  graph.add("pool",
            std::make_unique<AveragePool>(PoolOptions{
                .kernel_height = 2, .kernel_width = 2, .stride_height = 2, .stride_width = 2}));
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::int64_t one = needed(graph, {3, 4, 4, 1}, Keeps::for_backward);
  omp_set_num_threads(2);
  const std::int64_t two = needed(graph, {3, 4, 4, 1}, Keeps::for_backward);
  omp_set_num_threads(before);
  CHECK(two - one == 2 * 4 * 4 * 8);
}

TEST_CASE("a refusal names network, node, result and budget", "[fast]") {
  Graph graph = graph_of({2, 5});
  graph.add("small", turn());
  graph.add("huge", std::make_unique<Pad>(std::vector<std::int64_t>{0, 0, 0},
                                          std::vector<std::int64_t>{0, 0, 1 << 20}, 0.0f));
  Tensor x({1, 2, 5});
  Numerics numerics;
  const test::MemoryBudget budget(1 << 20);
  CHECK_THROWS_WITH(forward(graph, x, numerics),
                    "network m: 'huge' (pad): its result [1, 5, 1048578] of 20.0 MiB and the "
                    "other tensors in memory do not fit the memory budget of 1.0 MiB (--memory); "
                    "needs at least 21M");
  const MemoryClaim rest((1 << 18) - 19, "what stays");
  CHECK_THROWS_WITH(forward(graph, x, numerics), Contains("'small'"));
}

TEST_CASE("threads that run passes at the same time share the budget", "[fast]") {
  Graph graph = graph_of({2, 5});
  graph.add("a", turn());
  const Shape input{1, 2, 5};
  const std::int64_t alone = needed(graph, input, Keeps::nothing);
  const test::MemoryBudget budget(4 * (2 * alone - 1));
  require_memory(graph, std::span(&input, 1), Keeps::nothing);
  int refused = 0;
  RunContext& run = RunScope::current();
#pragma omp parallel num_threads(2) reduction(+ : refused)
  try {
    const RunScope scope(run);
    require_memory(graph, std::span(&input, 1), Keeps::nothing);
  } catch (const Error&) {
    ++refused;
  }
  CHECK(refused == 2);
}

TEST_CASE("passes to come are refused with the least budget that does for all", "[fast]") {
  Graph graph = graph_of({2, 5});
  graph.add("a", turn());
  constexpr std::int64_t kMiB = 1 << 20;
  const std::vector<Shape> small{{1, 2, 5}}, large{{26214, 2, 5}};  // 26214 x 10 floats: 1 MiB
  const PlannedPass passes[] = {{graph, small}, {graph, large, Keeps::nothing, 3, 2 * kMiB / 4}};
  {
    const test::MemoryBudget budget(kMiB);
    CHECK_THROWS_WITH(require_memory(passes),
                      Contains("on 3 threads,") && Catch::EndsWith("; needs at least 8M"));
  }
  {
    const test::MemoryBudget budget(8 * kMiB - 4096);
    CHECK_THROWS_WITH(require_memory(passes), Contains("needs at least 8M"));
  }
  const test::MemoryBudget budget(8 * kMiB);
  CHECK_NOTHROW(require_memory(passes));
}

TEST_CASE("a reference keeps its batch, and operands and result of each product", "[fast]") {
  Graph graph = graph_of({4});
  graph.add("fc", std::make_unique<Linear>(4, 3, true));
  CHECK(kept_products(graph, batch_shapes(graph, 5)) == 5 * 4 + 5 * 4 + 5 * 3);
}

TEST_CASE("no reference network is refused what its tensors take", "[fast]") {
  for (const std::string& name : net_names()) {
    if (net_kind(name) != DataKind::images) continue;
    INFO(name);
    const Shape shape{28, 28, 1}, input{16, 28, 28, 1};
    const Graph graph = build_net(name, shape, 10);
    std::int64_t values = 16 * 784;
    std::vector<Shape> shapes{input};
    for (const Node& node : graph.nodes) {
      std::vector<Shape> inputs;
      for (const int v : node.inputs) inputs.push_back(shapes[static_cast<std::size_t>(v)]);
      shapes.push_back(node.op->output_shape(inputs));
      values += element_count(shapes.back());
    }
    const std::int64_t inference = needed(graph, input, Keeps::nothing),
                       training = needed(graph, input, Keeps::for_backward);
    CHECK(inference < training);
    CHECK(inference < 4 * values + 4 * graph.parameter_count());
    CHECK(training < 8 * values + 5 * graph.parameter_count() + 10'000);
  }
}

namespace {

/// A result of any size, with memory of its own while it runs.
class Sized final : public Op {
 public:
  Sized(std::int64_t size, std::int64_t own) : Op({.kind = "sized"}), size_(size), own_(own) {}
  Shape output_shape(Shapes inputs) const override { return {inputs[0][0], size_}; }
  void forward(const OpCall&, OpInputs, Tensor&) const override {}
  void backward(const OpCall&, const OpBackward&) const override {}
  OperatorMemory memory(Shapes) const override { return {own_, 0, 0}; }

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

}  // namespace numemu::net::memory_plan_test
