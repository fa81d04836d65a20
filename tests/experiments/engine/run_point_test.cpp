// A row names networks and data, never files, and is the same whatever path led to them.
#include "experiments/engine/run_point.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/experiments/engine/small_bench.hpp"

using namespace numemu::experiments;

TEST_CASE("rows are free of paths", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const auto point = [](const std::string& net, const std::string& data) {
    return parse_sweep(
               R"({"numemu_sweep": 1, "net": ")" + net + R"(", "data": ")" + data +
                   R"(", "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "mxfp4"}}}})",
               "folder/s.json")
        .points[0];
  };
  const auto by_file = identify(point("../some/where/mlp.safetensors", "mnist:/some/where"), bench),
             by_name = identify(point("mlp", "mnist"), bench);
  CHECK(by_file == by_name);
  CHECK(by_file["net"] == "mlp");
  CHECK(by_file["eval_images"] == 40);
  CHECK(by_file.dump().find("where") == std::string::npos);
}

TEST_CASE("a row of images has the error of its SQNR and no bits per character", "[fast]") {
  Workbench bench(testing::small_dataset(), testing::small_net(), 40);
  const Point point =
      parse_sweep(R"({"numemu_sweep": 1, "grid": {"roles.weight.format": ["mxfp4"]}})", "s.json")
          .points[0];
  const auto row = run_point(point, bench);
  CHECK(row["metrics"]["sqnr_error_db"].get<double>() > 0);
  CHECK(row["metrics"]["sqnr_db"].get<double>() > 0);
  CHECK_FALSE(row["metrics"].contains("bits_per_character"));
  CHECK(row["predicted"]["tensors"].size() == 3);
  CHECK(row["predicted"]["tensors"][0]["format"] == "mxfp4");
  CHECK_FALSE(row.contains("notes"));
}
