// Predictors named in a recipe: the text, the file's digest, and what the network computes.
#include "policies/zap/zap_mask.hpp"

#include "emu/net/forward.hpp"
#include "formats/error.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/zap/zap_network.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/policies/zap/small_zap.hpp"

namespace zap_mask_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

TEST_CASE("zap mask: the text", "[fast]") {
  for (const char* text : {"zap(a.safetensors)", "zap(a.safetensors,threshold=0.25)",
                           "zap(dir/a,threshold=-1,sha256=0123456789abcdef)"}) {
    CHECK(is_zap_mask(text));
    CHECK(to_string(parse_zap_mask(text)) == text);
  }
  CHECK_FALSE(is_zap_mask("greedy(2:4)"));
  for (const char* text : {"zap", "zap()", "zap(a,threshold=x)", "zap(a,sha256=12)", "zap(a,b)",
                           "zap(a,threshold=1,threshold=2)"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_zap_mask(text), Contains("expected zap(FILE)"));
  }
}

TEST_CASE("zap mask: a recipe computes what the decorator does", "[fast]") {
  const numemu::test::TemporaryFolder folder;
  const net::Graph graph = testing::small_graph();
  ZapNetwork network = make_zap_network(zap_sites(graph, false), 5, 3);
  network.set_threshold(0.05f);
  const std::string file = folder / "zap.safetensors";
  save_zap_network(file, network);
  const net::Tensor x = testing::small_samples(0, 4);

  net::Numerics plain;
  ZapNumerics decorated(network, plain);
  const net::Step step{net::Phase::inference, 0, nullptr};
  decorated.begin_step(step);
  const net::Tensor expected = net::forward(graph, x, decorated);
  const auto recipe = [&](const std::string& mask) {
    return Recipe::parse_text(
        R"j({"numemu_recipe": 1, "roles": {"vector": {"mask": ")j" + mask + "\"}}}", "r.json");
  };
  const auto result = [&](const std::string& mask) {
    RecipeNumerics numerics(recipe(mask), graph, "r.json");
    numerics.begin_step(step);
    return net::forward(graph, x, numerics).data;
  };
  CHECK(result("zap(" + file + ")") == expected.data);
  CHECK(result("zap(" + file + ",threshold=-100)") == net::forward(graph, x, plain).data);
  CHECK(result("zap(" + file + ")") != net::forward(graph, x, plain).data);

  // The canonical form names the bytes: other predictors under that name are refused.
  const std::string canonical = recipe("zap(" + file + ")").layer("relu1").zap->digest;
  CHECK(canonical.size() == 16);
  CHECK_NOTHROW(recipe("zap(" + file + ",sha256=" + canonical + ")"));
  CHECK_THROWS_WITH(recipe("zap(" + file + ",sha256=0123456789abcdef)"),
                    Contains("r.json: roles.vector.mask") && Contains("digest 0123456789abcdef"));
  CHECK_THROWS_WITH(recipe("zap(" + folder.path() + "/none)"), Contains("cannot be opened"));
  CHECK_THROWS_WITH(recipe("greedy(2:4)"), Contains("zap(FILE) or null"));
  numemu::test::write_file(file, "no predictors");
  CHECK_THROWS_WITH(result("zap(" + file + ")"), Contains("r.json: roles.vector.mask"));
}

}  // namespace zap_mask_test
