// Keys that stand twice, nesting, and texts that are no JSON.
#include "formats/storage/json_guard.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu {
namespace {

/// What is found first: "deep", the key that stands twice, or "" for nothing.
std::string found(const std::string& text, int deepest = 3) {
  return test::message_of([&] {
    guard_json(
        text, deepest, [] { throw Error("deep"); },
        [](const std::string& key) { throw Error("twice " + key); });
  });
}

TEST_CASE("a key twice in one object", "[fast]") {
  CHECK(found(R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]})").empty());
  CHECK(found(R"({"a": 1, "b": 2, "a": 3})") == "twice a");
  CHECK(found(R"({"a": {"b": [], "b": 1}})") == "twice b");
  CHECK(found(R"({"b": {"a": 1}, "a": 2, "\u0061": 3})") == "twice a");
}

TEST_CASE("levels of lists and objects", "[fast]") {
  CHECK(found(R"({"a": [{"b": 1}, 2], "c": [[]]})").empty());
  CHECK(found(R"({"a": [{"b": []}]})") == "deep");
  CHECK(found("[[[[") == "deep");
  CHECK(found("[[[[]]]]", 4).empty());
  CHECK(found(std::string(100'000, '[')) == "deep");
}

TEST_CASE("mistakes in the syntax end the walk", "[fast]") {
  for (const char* text : {"", "{\"a\": 1,, \"a\": 2}", "[1e999, [[[[", "\xff", "{\"a\"", "1 2"})
    CHECK(found(text).empty());
}

}  // namespace
}  // namespace numemu
