// Orders of an exchange against models that hold everything: sums, what travels, bits on the wire.
#include "emu/net/exchange.hpp"

#include <cmath>

#include "emu/net/memory.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net::exchange_test {
namespace {

using Vectors = std::vector<std::vector<float>>;
constexpr int kElements = 11;

Vectors gradients_of(int workers) {
  Vectors all;
  for (int w = 0; w < workers; ++w)
    all.push_back(test::random_tensor({kElements}, static_cast<std::uint32_t>(w)).data);
  return all;
}

// Rounds to multiples of 1/16, at 8 bits an element, and says what travelled.
struct Sixteenths {
  std::vector<std::string> senders;
  ExchangeLinks links(ExchangeOrder order) {
    return {.order = order, .carry = [this](std::size_t, std::string_view sender, Tensor& x) {
              senders.emplace_back(sender);
              round(x.data);
              return 8.0 * static_cast<double>(x.size());
            }};
  }
  static void round(std::span<float> x) {
    for (float& value : x) value = std::round(value * 16) / 16;
  }
};

Exchanged run(const Vectors& given, ExchangeLinks links) {
  const auto exchange = make_exchange(std::ssize(given), std::move(links));
  for (std::size_t w = 0; w < given.size(); ++w) {
    Tensor tensor({kElements});
    tensor.data = given[w];
    exchange->add({static_cast<std::int64_t>(w), {std::move(tensor), Tensor()}});
  }
  return exchange->finish();
}

std::vector<float> plus(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
std::vector<float> over(std::vector<float> a, int n) {
  for (float& x : a) x /= static_cast<float>(n);
  return a;
}

// Level by level: of two neighbours the right one travels; a last one alone rises.
std::vector<float> tree_model(Vectors level, bool rounds) {
  while (level.size() > 1) {
    Vectors next;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      if (i + 1 == level.size()) {
        next.push_back(level[i]);
        continue;
      }
      if (rounds) Sixteenths::round(level[i + 1]);
      next.push_back(plus(level[i], level[i + 1]));
    }
    level = std::move(next);
  }
  return level[0];
}

std::vector<float> ring_model(const Vectors& g, bool rounds) {
  const auto workers = static_cast<int>(g.size());
  std::vector<float> sum(kElements);
  for (int c = 0; c < workers; ++c) {
    for (int i = kElements * c / workers; i < kElements * (c + 1) / workers; ++i) {
      float total = g[static_cast<std::size_t>((c + 1) % workers)][static_cast<std::size_t>(i)];
      for (int hop = 1; hop < workers; ++hop) {
        if (rounds) total = std::round(total * 16) / 16;
        total += g[static_cast<std::size_t>((c + 1 + hop) % workers)][static_cast<std::size_t>(i)];
      }
      sum[static_cast<std::size_t>(i)] = total;
    }
  }
  return sum;
}

using Kind = ExchangeOrder::Kind;

TEST_CASE("chains, trees and rings in float32 are those of the models, for 1 to 9 workers",
          "[fast]") {
  for (int workers = 1; workers <= 9; ++workers) {
    INFO(workers);
    const Vectors g = gradients_of(workers);
    std::vector<float> chain = g[0];
    for (int w = 1; w < workers; ++w) chain = plus(chain, g[static_cast<std::size_t>(w)]);
    for (const Kind kind : {Kind::index, Kind::server})
      CHECK(run(g, {.order = {kind}}).gradients[0].data == over(chain, workers));
    CHECK(run(g, {.order = {Kind::tree}}).gradients[0].data == over(tree_model(g, false), workers));
    CHECK(run(g, {.order = {Kind::ring}}).gradients[0].data == over(ring_model(g, false), workers));
  }
}

TEST_CASE("what travels is rounded, and only that", "[fast]") {
  for (int workers = 1; workers <= 9; ++workers) {
    INFO(workers);
    const Vectors g = gradients_of(workers);
    std::vector<float> chain(kElements);
    for (std::vector<float> own : g) {
      Sixteenths::round(own);
      chain = plus(chain, own);
    }
    Sixteenths wire;
    CHECK(run(g, wire.links({Kind::index})).gradients[0].data == over(chain, workers));
    CHECK(wire.senders.size() == static_cast<std::size_t>(workers));
    std::vector<float> back = over(chain, workers);
    Sixteenths::round(back);
    CHECK(run(g, wire.links({Kind::server})).gradients[0].data == back);
    back = over(tree_model(g, true), workers);
    Sixteenths::round(back);
    CHECK(run(g, wire.links({Kind::tree})).gradients[0].data == back);
    back = over(ring_model(g, true), workers);
    Sixteenths::round(back);
    CHECK(run(g, wire.links({Kind::ring})).gradients[0].data == back);
  }
}

TEST_CASE("nodes of the hierarchical order send means, also a short last one", "[fast]") {
  const Vectors g = gradients_of(8);
  Sixteenths wire;
  std::vector<float> sum(kElements);
  for (std::size_t node = 0; node < 2; ++node) {
    std::vector<float> mean = g[4 * node];
    for (std::size_t w = 1; w < 4; ++w) mean = plus(mean, g[4 * node + w]);
    mean = over(mean, 4);
    Sixteenths::round(mean);
    sum = plus(sum, mean);
  }
  std::vector<float> expected = over(sum, 2);
  Sixteenths::round(expected);
  const Exchanged result = run(g, wire.links({Kind::hierarchical, 4}));
  CHECK(result.gradients[0].data == expected);
  CHECK(wire.senders == std::vector<std::string>{"node0", "node1", "mean"});
  CHECK(result.wire[0].sent == 8.0 * kElements / 4);
  CHECK(result.wire[0].returned == 8.0 * kElements / 4);
  // In a short batch fewer of the eight workers have samples; the result is the mean over those.
  for (std::size_t workers = 1; workers < 8; ++workers) {
    const auto exchange = make_exchange(8, {.order = {Kind::hierarchical, 4}});
    for (std::size_t w = 0; w < workers; ++w) {
      Tensor tensor({kElements});
      tensor.data = g[w];
      exchange->add({static_cast<std::int64_t>(w), {std::move(tensor)}});
    }
    const std::vector<float> found = exchange->finish().gradients[0].data;
    for (std::size_t i = 0; i < kElements; ++i) {
      double mean = 0;
      for (std::size_t w = 0; w < workers; ++w)
        mean += double{g[w][i]} / static_cast<double>(workers);
      INFO(workers << " " << i);
      CHECK(found[i] == Approx(mean).margin(4 * 0x1p-24));
    }
  }
}

TEST_CASE("bits on the wire are those of the messages of each order", "[fast]") {
  const Vectors g = gradients_of(8);
  const double whole = 32.0 * kElements;
  const auto wire = [&](ExchangeOrder order) { return run(g, {.order = order}).wire.at(0); };
  CHECK(wire({Kind::index}).sent == whole);
  CHECK(wire({Kind::server}).returned == whole);
  CHECK(wire({Kind::tree}).sent == whole * 7 / 8);  // all but the root send once
  CHECK(wire({Kind::ring}).sent == whole * 7 / 8);  // seven parts of eight
  CHECK(wire({Kind::ring}).returned == whole);
  CHECK(run(g, {}).wire.at(1).sent == 0);  // an untrained parameter
}

TEST_CASE("sums by a function of one's own see the addends of each order", "[fast]") {
  const Vectors g = gradients_of(4);
  std::vector<std::string> names;
  ExchangeLinks links;
  links.add = [&](std::size_t p, std::string_view name, std::span<const float* const> addends,
                  std::int64_t n, float* sum) {
    CHECK(p == 0);
    names.push_back(std::string(name) + ":" + std::to_string(addends.size()));
    for (std::int64_t i = 0; i < n; ++i) {
      double total = 0;
      for (const float* addend : addends) total += double{addend[i]};
      sum[i] = static_cast<float>(total);
    }
  };
  links.order = {Kind::index};
  const Exchanged index = run(g, links);
  CHECK(names == std::vector<std::string>{"sum:4"});
  for (std::size_t i = 0; i < kElements; ++i) {
    const double exact = double{g[0][i]} + g[1][i] + g[2][i] + g[3][i];
    CHECK(index.gradients[0].data[i] == static_cast<float>(exact) / 4);
  }
  names.clear();
  links.order = {Kind::tree};
  run(g, links);
  CHECK(names == std::vector<std::string>{"sum0:2", "sum1:2", "sum2:2"});
}

TEST_CASE("chains keep one gradient, trees log2 of the workers, rings all", "[fast]") {
  const auto most = [](Kind kind) {
    const auto exchange = make_exchange(64, {.order = {kind}});
    std::int64_t held = 0;
    for (int w = 0; w < 64; ++w) {
      exchange->add({w, {Tensor({1000})}});
      held = std::max(held, memory_account().claimed());
    }
    return held / 4000;
  };
  const std::int64_t before = memory_account().claimed();
  CHECK(most(Kind::index) - before / 4000 == 1);
  CHECK(most(Kind::tree) - before / 4000 == 5);  // six sums, the first as of one worker
  CHECK(most(Kind::ring) - before / 4000 == 63);
  CHECK(memory_account().claimed() == before);
}

TEST_CASE("orders are read and written, others are refused", "[fast]") {
  for (const char* text : {"index", "tree", "ring", "hierarchical(4)", "server"})
    CHECK(to_string(read_exchange_order(text)) == text);
  CHECK_THROWS_WITH(read_exchange_order("rnig"), Catch::Contains("'rnig'; did you mean 'ring'"));
  CHECK_THROWS_WITH(read_exchange_order("ring(2)"), Catch::Contains("expected no argument"));
  CHECK_THROWS_WITH(read_exchange_order("hierarchical"), Catch::Contains("hierarchical(4)"));
  CHECK_THROWS_WITH(read_exchange_order("hierarchical(0)"), Catch::Contains("from 1 to"));
  CHECK_THROWS_WITH(make_exchange(6, {.order = {Kind::hierarchical, 4}}),
                    Catch::Contains("expected a multiple of 4 workers, there are 6"));
  CHECK_THROWS_WITH(make_exchange(1)->finish(), Catch::Contains("no worker"));
}

}  // namespace
}  // namespace numemu::net::exchange_test
