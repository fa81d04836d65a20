// The grid lines and steps that charts draw are the formats' own values.
#include "experiments/report/grids.hpp"

#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("the grid of float4_e2m1fn", "[fast]") {
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[0], nullptr, "u")};
  const Json grid = grid_records(swept_formats(records_of(rows)));
  REQUIRE(grid.size() == 1);
  CHECK(grid[0]["values"] == Json({-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  CHECK(grid[0]["largest"] == 6);
}

TEST_CASE("steps of float4_e2m1fn relative to the value", "[fast]") {
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[0], nullptr, "u")};
  const Json steps = step_records(swept_formats(records_of(rows)));
  REQUIRE(steps.size() == 7);
  CHECK(steps[0]["value"].get<double>() == Approx(0.5 / 6));
  CHECK(steps[0]["step"].get<double>() == Approx(100));
  CHECK(steps[3]["step"].get<double>() == Approx(50));
  CHECK(steps[6]["value"] == 1);
  CHECK(steps[6]["step"].get<double>() == Approx(100 * 2.0 / 6));
}

TEST_CASE("formats stand float before int, narrow before wide; wide ones are not drawn", "[fast]") {
  const sample::Swept wide{"float16", 16, 60};
  const std::vector<Json> rows = {sample::row(0, &sample::kFormats[14], &sample::kFormats[8], "u"),
                                  sample::row(1, &sample::kFormats[4], &sample::kFormats[0], "u"),
                                  sample::row(2, &wide, &sample::kFormats[0], "u")};
  std::vector<std::string> names;
  for (const SweptFormat& f : swept_formats(records_of(rows))) names.push_back(f.name);
  CHECK(names == std::vector<std::string>{"float4_e2m1fn", "float8_e4m3fn", "int2", "int8"});
}

TEST_CASE("block formats are drawn by their elements", "[fast]") {
  const std::vector<Json> blocks = sample::block_rows(), layers = sample::sensitivity_rows();
  for (const std::vector<Json>* rows : {&blocks, &layers}) {
    std::vector<std::string> names;
    for (const SweptFormat& f : swept_formats(records_of(*rows))) names.push_back(f.name);
    CHECK(names ==
          std::vector<std::string>{"float4_e2m1fn", "float6_e2m3fn", "float8_e4m3fn", "int8"});
  }
}
