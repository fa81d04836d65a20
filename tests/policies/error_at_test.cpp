// Errors from below get the key before them; other exceptions pass.
#include "policies/error_at.hpp"

#include <new>

#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace error_at_test {

using namespace numemu;

TEST_CASE("error at: the key stands before the message", "[fast]") {
  const Json json = {{"roles", {{"weight", "x"}}}};
  const JsonReader key = JsonReader(json, "r.json").member("roles").member("weight");
  CHECK_THROWS_WITH(policies::at(key, []() -> int { throw Error("unknown x"); }),
                    "r.json: roles.weight: unknown x");
  CHECK_THROWS_AS(policies::at(key, []() -> int { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(policies::at(key, [] { return 7; }) == 7);
}

}  // namespace error_at_test
