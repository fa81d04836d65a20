// Patterns of density one half: closed forms against published values, against each other and
// against drawn numbers; networks under every pattern: kept halves, errors of outputs, and the same
// accuracy as a network whose weights are pruned by hand.
#include "experiments/transposable/patterns.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/losses_file.hpp"
#include "formats/analysis/distribution.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/mask_tensor.hpp"
#include "policies/mask/weight_mask.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace patterns_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::message_of;
using numemu::test::TemporaryFolder;
namespace {

net::Graph small_network() {
  net::Graph graph = net::build_net("dlrm-small", {21}, 2);
  net::initialize(graph, 11);
  return graph;
}

}  // namespace

TEST_CASE("transposable: every pattern keeps half of the even layers", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = net::load_dataset("clicks", folder.path());
  const net::Graph graph = small_network();
  const std::vector<std::string> layers = even_layers(graph);
  REQUIRE_FALSE(layers.empty());
  for (const std::string& layer : layers) CHECK(net::weight_of(graph, layer).dim(-1) % 8 == 0);

  std::vector<std::string> names;
  for (const HalfPattern& pattern : half_patterns()) names.push_back(pattern.name);
  const std::vector<Variant> all = variants(names);
  CHECK(all.size() == 3 * names.size() - 2);  // unstructured takes no repair
  constexpr std::int64_t kImages = 64;
  const std::vector<PrunedNetwork> results = prune_network(graph, data, all, kImages);
  REQUIRE(results.size() == all.size() + 1);
  CHECK(results[0].kept == 1.0);
  CHECK(results[0].pruned == 0.0);
  const PrunedNetwork* bare = nullptr;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const PrunedNetwork& result = results[v + 1];
    INFO(all[v].mask());
    CHECK(result.right.size() == kImages);
    CHECK(result.kept == Approx(0.5).margin(0.005));
    CHECK(result.pruned > 0.1);
    CHECK(result.pruned < 0.45);
    if (all[v].repair == "none") bare = &result;
    REQUIRE(bare != nullptr);
    CHECK(result.pruned == bare->pruned);  // repair changes what is kept, not which
    REQUIRE(result.fitted.size() == layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const double fitted = result.fitted[l].second;
      CHECK(result.fitted[l].first == layers[l]);
      CHECK(fitted > 0);
      // The least squares is the least on the images it is solved for.
      if (all[v].repair == "adaprune") CHECK(fitted <= bare->fitted[l].second);
    }
  }
}

TEST_CASE("transposable: the recipe prunes what the rule prunes", "[fast]") {
  const TemporaryFolder folder;
  const net::Dataset data = net::load_dataset("clicks", folder.path());
  const net::Graph graph = small_network();
  constexpr std::int64_t kImages = 200;
  for (const char* name : {"2:4-T", "4:8"}) {
    const std::vector<Variant> all = {{&half_pattern(name), "none"},
                                      {&half_pattern(name), "absorb"}};
    const std::vector<PrunedNetwork> results = prune_network(graph, data, all, kImages);
    for (std::size_t v = 0; v < all.size(); ++v) {
      const policies::MaskPolicy policy = policies::parse_mask(all[v].mask());
      net::Graph pruned = small_network();
      for (const std::string& layer : even_layers(graph)) {
        const net::Tensor& weight = net::weight_of(graph, layer);
        auto& own = const_cast<net::Tensor&>(net::weight_of(pruned, layer));
        policies::mask_tensor(policy, {}, policies::weight_layout(policy, weight.shape, 1), 0, 0,
                              weight.data.data(), own.data.data(), nullptr);
      }
      net::Numerics float32;
      const net::Evaluation by_hand =
          net::evaluate(pruned, data, net::Split::test, kImages, float32);
      CHECK(results[v + 1].right == answer_text(by_hand.right));
      CHECK(results[v + 1].loss == by_hand.loss);
    }
  }
}

TEST_CASE("transposable: patterns have names, masks and an order", "[fast]") {
  double last = 0;
  for (const HalfPattern& pattern : half_patterns()) {
    CHECK_NOTHROW(policies::parse_mask(pattern.mask));
    CHECK(&half_pattern(pattern.name) == &pattern);
    CHECK(pattern.loss > last);
    last = pattern.loss;
  }
  CHECK_THAT(message_of([] { half_pattern("3:4"); }),
             Catch::StartsWith("--set: patterns: expected one of unstructured, 4:8, ") &&
                 Catch::Contains("3:4"));
}

TEST_CASE("transposable: losses of normal groups", "[fast]") {
  CHECK(group_loss(1, 2) == Approx(1 - 1 / std::sqrt(2.0)).epsilon(1e-9));
  CHECK(group_loss(3, 3) == 0);
  CHECK(half_loss() == Approx(0.20345).margin(5e-6));  // as printed
  // Larger groups lose less, down to a group without end.
  double last = group_loss(1, 2), excess = 0, last_excess = 0;
  for (const int kept : {2, 4, 8, 32, 128}) {
    const double loss = group_loss(kept, 2 * kept);
    CHECK(loss < last);
    CHECK(loss > half_loss());
    last = loss;
    last_excess = excess;
    excess = loss - half_loss();
  }
  // As 1 / M: groups of four times the size lose a quarter of the rest, but for terms in 1 / M^2.
  CHECK(excess / last_excess == Approx(0.25).epsilon(0.01));
  CHECK(group_loss(2, 4) == Approx(0.2554).margin(0.0005));  // drawn, as printed
}

TEST_CASE("transposable: losses of drawn numbers", "[fast]") {
  const Distribution normal = Distribution::parse("normal", false);
  const RandomSource random{.seed = 4, .stream = Stream::vectors};
  constexpr int kTiles = 40'000;
  const double of_diagonals = diagonal_loss(), of_groups = group_loss(3, 4);
  double diagonal = 0, groups = 0, total = 0, diagonal_squares = 0, groups_squares = 0;
  for (std::uint64_t t = 0; t < kTiles; ++t) {
    std::vector<double> x(4);
    for (std::uint64_t i = 0; i < 4; ++i) x[i] = std::fabs(normal.draw(random, 4 * t + i));
    const double sum = x[0] + x[1] + x[2] + x[3];
    const double lost = std::min(x[0] + x[3], x[1] + x[2]) - of_diagonals * sum;
    std::sort(x.begin(), x.end());
    const double smaller = x[0] - of_groups * sum;
    total += sum;
    diagonal += lost;
    diagonal_squares += lost * lost;
    groups += smaller;
    groups_squares += smaller * smaller;
  }
  // Both have mean zero: 4 standard errors.
  CHECK(std::fabs(diagonal) < 4 * std::sqrt(diagonal_squares));
  CHECK(std::fabs(groups) < 4 * std::sqrt(groups_squares));
  CHECK(std::sqrt(diagonal_squares) < 0.002 * total);  // sharp enough to tell
}

TEST_CASE("transposable: from unstructured zeros to N:M", "[fast]") {
  struct Row {
    double zeros, broken24, broken48, extra24, extra48;
  };
  // As printed in the specification; half of the last digit.
  for (const Row& row :
       {Row{.5, .3125, .363281, .09375, .068359}, Row{.6, .1792, .173670, .0512, .029082},
        Row{.7, .0837, .057968, .02295, .008827}, Row{.8, .0272, .010406, .0072, .001466},
        Row{.9, .0037, .000432, .00095, .000057}}) {
    CHECK(violation_share(2, 4, row.zeros) == Approx(row.broken24).margin(5.1e-7));
    CHECK(violation_share(4, 8, row.zeros) == Approx(row.broken48).margin(5.1e-7));
    CHECK(extra_share(2, 4, row.zeros) == Approx(row.extra24).margin(5.1e-7));
    CHECK(extra_share(4, 8, row.zeros) == Approx(row.extra48).margin(5.1e-7));
  }
}

}  // namespace patterns_test
