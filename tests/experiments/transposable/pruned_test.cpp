// Networks under every pattern: kept halves, errors of outputs, and the same accuracy as a network
// whose weights are pruned by hand.
#include <algorithm>
#include <cmath>

#include "emu/net/gemm_layers.hpp"
#include "emu/net/nets.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/transposable/patterns.hpp"
#include "policies/mask/mask_rule.hpp"
#include "policies/mask/mask_tensor.hpp"
#include "policies/mask/weight_mask.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"

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
  const Json results = prune_network(graph, data, all, kImages);
  REQUIRE(results.size() == all.size() + 1);
  CHECK(results[0]["kept"] == 1.0);
  CHECK(results[0]["pruned"] == 0.0);
  const Json* bare = nullptr;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const Json& result = results[v + 1];
    INFO(all[v].mask());
    CHECK(result["right"].get<std::string>().size() == kImages);
    CHECK(result["kept"].get<double>() == Approx(0.5).margin(0.005));
    CHECK(result["pruned"].get<double>() > 0.1);
    CHECK(result["pruned"].get<double>() < 0.45);
    if (all[v].repair == "none") bare = &result;
    REQUIRE(bare != nullptr);
    CHECK(result["pruned"] == (*bare)["pruned"]);  // repair changes what is kept, not which
    for (const std::string& layer : layers) {
      const double fitted = result["fitted"][layer];
      CHECK(fitted > 0);
      // The least squares is the least on the images it is solved for.
      if (all[v].repair == "adaprune") CHECK(fitted <= (*bare)["fitted"][layer].get<double>());
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
    const Json results = prune_network(graph, data, all, kImages);
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
      std::string right;
      for (const std::uint8_t r : by_hand.right) right += r != 0 ? '1' : '0';
      CHECK(results[v + 1]["right"] == right);
      CHECK(results[v + 1]["loss"] == by_hand.loss);
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
