// Operands that the unit reads dequantized: levels of a codebook.
#include "policies/numerics/plain_operand.hpp"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "emu/net/forward.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/ops/linear.hpp"
#include "formats/storage/npy.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace plain_operand_test {

using namespace numemu;
using namespace numemu::policies;

namespace {

/// A codebook of five levels in a file that lives as long as this.
struct Levels {
  std::string path = "/tmp/numemu-levels-" + std::to_string(::getpid()) + ".npy";
  std::vector<double> values = {-0.125, -0.03125, 0, 0.0625, 0.25};
  Levels() {
    write_npy(path, ArrayType::float64, {static_cast<std::int64_t>(values.size())}, values.data());
  }
  ~Levels() { std::filesystem::remove(path); }
  float nearest(float x) const {
    double best = values[0];
    for (const double v : values) {
      if (std::fabs(v - x) < std::fabs(best - x)) best = v;
    }
    return static_cast<float>(best);
  }
};

net::Graph linear_net() {
  net::Graph graph;
  graph.inputs = {{"input", {24}}};
  graph.add("fc", std::make_unique<net::Linear>(24, 5), {0});
  net::initialize(graph, 0);
  return graph;
}

}  // namespace

TEST_CASE("units that take float32 read the levels of a codebook", "[fast]") {
  const Levels levels;
  const std::string weight =
      R"j({"weight": {"format": "codebook()j" + levels.path + R"j()", "scale": )j";
  const net::Graph graph = linear_net();
  const net::Tensor x = policies::test::noise({3, 24}, 5);
  const auto output = [&](const std::string& scale, const std::string& rest = "") {
    const Recipe recipe = Recipe::parse_text(
        R"({"numemu_recipe": 1, "roles": )" + weight + "\"" + scale + "\"}}" + rest + "}", "r");
    RecipeNumerics numerics(recipe, graph);
    numerics.freeze(graph, 0, {});
    return net::forward(graph, x, numerics).data;
  };
  net::Graph rounded = linear_net();
  for (float& w : rounded.parameters().front()->value.data) w = levels.nearest(w);
  net::Numerics float32;
  CHECK(output("none") == net::forward(rounded, x, float32).data);
  CHECK(output("absmax") != output("none"));
  CHECK_THROWS_WITH(output("none", R"(, "gemms": {"fprop": {"unit": "nvidia.h100.mma.e4m3.f32"}})"),
                    Catch::Contains("nvidia.h100.mma.e4m3.f32 does not take codebooks") &&
                        Catch::Contains("expected a unit that takes float32"));
}

}  // namespace plain_operand_test
