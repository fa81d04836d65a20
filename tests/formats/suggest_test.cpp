// The nearest known name.
#include "formats/suggest.hpp"

#include "tests/catch.hpp"

namespace numemu {
namespace {

TEST_CASE("suggest: smallest edit distance, the earliest of equals", "[fast]") {
  const std::vector<std::string> known = {"int4", "int8", "float16"};
  CHECK(nearest_name("int88", known) == "int8");
  CHECK(nearest_name("intt", known) == "int4");
  CHECK(nearest_name("flaot16", known) == "float16");
  CHECK(nearest_name("", known) == "int4");
  CHECK(nearest_name("x", {}).empty());
  CHECK(nearest_name(std::string(1 << 20, 'f'), known) == "float16");
}

TEST_CASE("suggest: the text of an unknown name", "[fast]") {
  CHECK(unknown_name("format", "in8", {"int8"}) == "unknown format 'in8'; did you mean 'int8'?");
  CHECK(unknown_name("format", "x", {}) == "unknown format 'x'");
}

}  // namespace
}  // namespace numemu
