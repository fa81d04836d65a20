// Strict JSON: every mistake is one line with its position.
#include "formats/storage/json_reader.hpp"

#include <new>

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace json_reader_test {

using namespace numemu;
using Catch::Contains;

TEST_CASE("syntax errors name line and column", "[fast]") {
  CHECK_THROWS_WITH(parse_json("{\n \"a\": 1,\n \"b\" 2}", "f.json"),
                    Contains("f.json: line 3 column 6"));
  CHECK_THROWS_WITH(parse_json("", "f.json"), Contains("f.json: line 1 column 1"));
  CHECK_THROWS_WITH(parse_json("{\"a\": 1, \"a\": 2}", "f.json"), Contains("duplicate key 'a'"));
  CHECK_THROWS_WITH(parse_json(std::string(1000, '['), "f.json"), Contains("nested deeper"));
  CHECK_THROWS_WITH(parse_json("{\"a\": \"\xff\"}", "f.json"), Contains("not valid JSON"));
}

TEST_CASE("unknown keys offer the nearest", "[fast]") {
  const Json json = parse_json(R"({"formt": 1})", "f.json");
  CHECK_THROWS_WITH(JsonReader(json, "f.json").require_keys({"format", "scale"}),
                    Contains("'formt'") && Contains("'format'"));
}

TEST_CASE("integers are checked for range and wholeness", "[fast]") {
  const Json json = parse_json(R"({"a": 1.5, "b": 9, "c": "x", "d": 3})", "f.json");
  const JsonReader reader(json, "f.json");
  CHECK_THROWS_WITH(reader.member("a").integer(0, 0, 5),
                    "f.json: a: expected an integer from 0 to 5");
  CHECK_THROWS_WITH(reader.member("b").integer(0, 0, 5), Contains("f.json: b"));
  CHECK_THROWS_WITH(reader.member("c").integer(0, 0, 5), Contains("f.json: c"));
  CHECK(reader.member("d").integer(0, 0, 5) == 3);
  CHECK(reader.member("absent").integer(4, 0, 5) == 4);
}

TEST_CASE("no integer is rounded", "[fast]") {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const auto read = [&](const std::string& number, std::int64_t least, std::int64_t most) {
    const Json json = parse_json("[" + number + "]", "f");
    return JsonReader(json, "f").element(0).integer(0, least, most);
  };
  CHECK(read("9007199254740992", 0, kMost) == kMost);
  CHECK(read("3.0", 0, 5) == 3);
  CHECK(read("-9223372036854775808", INT64_MIN, 0) == INT64_MIN);
  CHECK(read("9223372036854775807", 0, INT64_MAX) == INT64_MAX);
  for (const char* number : {"9007199254740993", "9007199254740993.0", "1e16", "-1", "1.5",
                             "18446744073709551615", "9223372036854775808", "\"1\"", "true"})
    CHECK_THROWS_WITH(read(number, 0, kMost),
                      "f: [0]: expected an integer from 0 to 9007199254740992");
}

TEST_CASE("the key stands before an error; other exceptions pass", "[fast]") {
  const Json json = {{"roles", {{"weight", "x"}}}};
  const JsonReader key = JsonReader(json, "r.json").member("roles").member("weight");
  for (const char* error : {"unknown x", "r.json: roles.weight: unknown x"})
    CHECK_THROWS_WITH(at(key, [&]() -> int { throw Error(error); }),
                      "r.json: roles.weight: unknown x");
  CHECK_THROWS_AS(at(key, []() -> int { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(at(key, [] { return 7; }) == 7);
}

TEST_CASE("files that are not there are named", "[fast]") {
  CHECK_THROWS_WITH(read_text("/nonexistent/recipe.json"), Contains("/nonexistent/recipe.json"));
}

}  // namespace json_reader_test
