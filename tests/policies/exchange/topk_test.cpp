// Top-k with error feedback: three steps of four workers by hand, what it conserves, its state.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "emu/net/ops/linear.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace topk_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;
using Catch::Contains;

namespace {

/// first.weight [6, 10], first.bias [6], second.weight [3, 6], second.bias [3].
net::Graph two_layers() {
  net::Graph graph;
  graph.name = "two";
  graph.inputs = {{"input", {10}}};
  graph.add("first", std::make_unique<net::Linear>(10, 6), {0});
  graph.add("second", std::make_unique<net::Linear>(6, 3));
  net::initialize(graph, 0);
  return graph;
}

Recipe recipe_of(const std::string& exchange) {
  return Recipe::parse_text(R"j({"numemu_recipe": 1, "exchange": )j" + exchange + "}", "r");
}

using Workers = std::vector<std::vector<net::Tensor>>;

Workers gradients_of(const net::Graph& graph, int workers, int step) {
  Workers all;
  for (int w = 0; w < workers; ++w) {
    all.emplace_back();
    for (const net::Parameter* parameter : graph.parameters()) {
      const auto seed = static_cast<std::uint32_t>(100 * step + 10 * w + all.back().size());
      all.back().push_back(noise(parameter->value.shape, seed));
    }
  }
  return all;
}

std::vector<net::Tensor> exchanged(net::Numerics& numerics, const Workers& gradients, int step) {
  std::vector<net::WorkerGradient> sent;
  for (const std::vector<net::Tensor>& own : gradients)
    sent.push_back({static_cast<std::int64_t>(sent.size()), own});
  return exchange_all(numerics, {net::Phase::training, step}, std::move(sent)).gradients;
}

/// The model: sorts all places, keeps a residual per worker and parameter.
class Model {
 public:
  std::vector<net::Tensor> exchange(double share, const Workers& gradients) {
    std::vector<net::Tensor> mean = gradients[0];
    for (net::Tensor& x : mean) std::fill(x.data.begin(), x.data.end(), 0.0f);
    for (std::size_t w = 0; w < gradients.size(); ++w) {
      for (std::size_t p = 0; p < mean.size(); ++p) {
        std::vector<float> send = gradients[w][p].data;
        if (gradients[w][p].shape.size() > 1) send = top(share, send, residuals_[{w, p}]);
        for (std::size_t i = 0; i < send.size(); ++i)
          mean[p].data[i] = w == 0 ? send[i] : mean[p].data[i] + send[i];
      }
    }
    if (gradients.size() == 1) return mean;
    for (net::Tensor& x : mean) {
      for (float& value : x.data) value /= static_cast<float>(gradients.size());
    }
    return mean;
  }

 private:
  static std::vector<float> top(double share, const std::vector<float>& gradient,
                                std::vector<float>& residual) {
    residual.resize(gradient.size());
    std::vector<std::pair<float, std::size_t>> order;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      residual[i] += gradient[i];
      order.emplace_back(-std::abs(residual[i]), i);  // equal ones by place
    }
    std::sort(order.begin(), order.end());
    std::vector<float> sent(gradient.size());
    for (long n = 0; n < std::lround(share * static_cast<double>(gradient.size())); ++n) {
      const std::size_t i = order[static_cast<std::size_t>(n)].second;
      sent[i] = residual[i];
      residual[i] = 0;
    }
    return sent;
  }

  std::map<std::pair<std::size_t, std::size_t>, std::vector<float>> residuals_;
};

void check_same(const std::vector<net::Tensor>& a, const std::vector<net::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t p = 0; p < a.size(); ++p) {
    INFO("parameter " << p);
    CHECK(differences(a[p].data, b[p].data) == 0);
  }
}

TEST_CASE("three steps of four workers are those of the model", "[fast]") {
  const net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe_of(R"j("topk(0.1)")j"), graph);
  Model model;
  for (int step = 0; step < 3; ++step) {
    const Workers gradients = gradients_of(graph, 4, step);
    check_same(exchanged(numerics, gradients, step), model.exchange(0.1, gradients));
  }
}

TEST_CASE("all that is sent and the residual are all gradients", "[fast]") {
  const net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe_of(R"j("topk(0.2)")j"), graph);
  // Whole numbers, so that all sums are exact.
  std::vector<float> given(60), sent(60);
  for (int step = 0; step < 5; ++step) {
    Workers gradients = gradients_of(graph, 2, step);
    for (auto& worker : gradients) {
      for (net::Tensor& x : worker) {
        for (float& value : x.data) value = std::round(value * 16);
      }
      for (std::size_t i = 0; i < 60; ++i) given[i] += worker[0].data[i];
    }
    const std::vector<net::Tensor> mean = exchanged(numerics, gradients, step);
    int kept = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      sent[i] += 2 * mean[0].data[i];
      kept += mean[0].data[i] != 0;
    }
    CHECK(kept <= 24);  // 12 of each worker
  }
  net::NamedState state;
  numerics.save_state(state);
  StateTensors residuals;
  load_tensors("recipe/exchange/topk", state, residuals);
  REQUIRE(residuals.size() == 4);
  for (std::size_t i = 0; i < 60; ++i) {
    CHECK(sent[i] + residuals.at("worker0/first.weight")[i] +
              residuals.at("worker1/first.weight")[i] ==
          given[i]);
  }
}

TEST_CASE("one worker that sends all changes no bit", "[fast]") {
  const net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe_of(R"j({"rule": "topk", "share": 1})j"), graph);
  for (int step = 0; step < 2; ++step) {
    Workers gradients = gradients_of(graph, 1, step);
    gradients[0][0].data[3] = -0.0f;
    const std::vector<net::Tensor> mean = exchanged(numerics, gradients, step);
    check_same(mean, gradients[0]);
    CHECK(std::signbit(mean[0].data[3]));
  }
}

TEST_CASE("of equal magnitudes the first are sent and a NaN does not stay", "[fast]") {
  const net::Graph graph = two_layers();
  RecipeNumerics numerics(recipe_of(R"j("topk(0.05)")j"), graph);  // 3 of 60, 1 of 18
  Workers gradients = gradients_of(graph, 1, 0);
  net::Elements& x = gradients[0][0].data;
  for (std::size_t i = 0; i < 60; ++i) x[i] = i % 2 == 0 ? -1.0f : 1.0f;
  x[40] = NAN;
  std::vector<net::Tensor> mean = exchanged(numerics, gradients, 0);
  CHECK(mean[0].data[0] == -1);
  CHECK(mean[0].data[1] == 1);
  CHECK(std::isnan(mean[0].data[40]));
  CHECK(std::count(mean[0].data.begin(), mean[0].data.end(), 0.0f) == 57);
  std::fill(x.begin(), x.end(), 0.0f);
  mean = exchanged(numerics, gradients, 1);
  for (std::size_t i = 0; i < 60; ++i)
    CHECK(mean[0].data[i] == (i == 2 || i == 4 ? -1.0f : i == 3 ? 1.0f : 0.0f));
}

TEST_CASE("residuals survive a restart and damaged ones are refused", "[fast]") {
  const net::Graph graph = two_layers();
  const Recipe recipe = recipe_of(R"j("topk(0.1)")j");
  RecipeNumerics whole(recipe, graph), resumed(recipe, graph), damaged(recipe, graph);
  for (int step = 0; step < 3; ++step) exchanged(whole, gradients_of(graph, 4, step), step);
  net::NamedState state;
  whole.save_state(state);
  const auto named = [](const auto& item) {
    return item.first == "recipe/exchange/topk/worker3/second.weight";
  };
  const auto found = std::find_if(state.begin(), state.end(), named);
  REQUIRE(found != state.end());
  resumed.load_state(state);
  const Workers next = gradients_of(graph, 4, 3);
  check_same(exchanged(resumed, next, 3), exchanged(whole, next, 3));
  found->second.resize(8);
  damaged.load_state(state);
  CHECK_THROWS_WITH(exchanged(damaged, next, 3),
                    Contains("worker3/second.weight: expected 18 elements, found 2"));
}

TEST_CASE("shares out of range are refused by key", "[fast]") {
  CHECK_THROWS_WITH(recipe_of(R"j("topk(0)")j"), Contains("exchange"));
  CHECK_THROWS_WITH(recipe_of(R"j({"rule": "topk", "share": 2})j"), Contains("exchange.share"));
}

}  // namespace

}  // namespace topk_test
