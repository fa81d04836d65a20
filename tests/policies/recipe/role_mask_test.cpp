// The masks that each role allows.
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/roles.hpp"
#include "tests/catch.hpp"

namespace role_mask_test {

using namespace numemu;
using namespace numemu::policies;
using Catch::Contains;

namespace {

std::optional<MaskPolicy> read(const char* role, const Json& mask) {
  return read_mask(JsonReader(Json{{"mask", mask}}, "r.json"), role);
}

}  // namespace

TEST_CASE("role mask: what roles take", "[fast]") {
  for (const char* text : {"greedy(2:4)", "greedy(4:8,axis=reduction,repair=adaprune)",
                           "transposable(4:8,refresh=5)", "random(2:4)", "unstructured(0.5)"}) {
    INFO(text);
    CHECK(to_string(*read("weight", text)) == text);
  }
  for (const char* role : {"activation", "gradient"}) {
    for (const char* text : {"greedy(2:4,remainder=pad)", "mvue(1:2)", "stochastic(0.9)"})
      CHECK(to_string(*read(role, text)) == text);
  }
  CHECK(read("gradient", "mvue(1:2,axis=batch)")->axis == MaskAxis::batch);
  CHECK(read("gradient", "stochastic(0.9,history=4,at=input)")->propagated);
  CHECK(!read("weight", nullptr));
  CHECK(!read_mask(JsonReader(Json{{"format", "int8"}}, "r.json"), "weight"));
  CHECK(!read_mask(JsonReader(Json(), "r.json"), "vector"));
}

TEST_CASE("role mask: what roles refuse", "[fast]") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"weight", "greedy(2:4,axis=batch)", "axis=channel or axis=reduction"},
      {"weight", "stochastic(0.5)", "not a threshold"},
      {"weight", "mvue(1:2)", "an unbiased estimate needs repeated draws"},
      {"weight", "transposable(2:4,axis=reduction)", "axis=channel for tiles"},
      {"activation", "transposable(2:4)", "tiles are those of weights"},
      {"activation", "greedy(2:4,axis=batch)", "those of gradients"},
      {"activation", "greedy(2:4,axis=reduction)", "several masks"},
      {"activation", "greedy(2:4,repair=absorb)", "those of weights"},
      {"activation", "stochastic(0.9,history=4)", "those of gradients"},
      {"gradient", "greedy(2:4,refresh=2)", "those of weights"},
      {"gradient", "greedy(2:4,axis=reduction)", "or axis=batch"},
      {"vector", "greedy(2:4)", "zap(FILE) or null"},
      {"saved", "greedy(2:4)", "masks are those of weight, activation and gradient"},
      {"weight", "gredy(2:4)", "r.json: mask: unknown mask 'gredy'"}};
  for (const auto& [role, text, words] : cases) {
    INFO(role << " " << text);
    CHECK_THROWS_WITH(read(role, text), Contains(words));
  }
  CHECK_THROWS_WITH(read("weight", 3), Contains("a text such as"));
}

}  // namespace role_mask_test
