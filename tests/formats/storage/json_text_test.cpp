// Keys that stand twice, nesting, zero bytes, and texts that are no JSON.
#include "formats/storage/json_text.hpp"

#include "tests/catch.hpp"
#include "tests/files.hpp"

namespace numemu::json_text_test {
namespace {

using namespace std::string_literals;

std::string found(const std::string& text, int deepest = 3) {
  return test::message_of([&] { parse_guarded(text, "f", deepest); });
}

TEST_CASE("a key twice in one object", "[fast]") {
  CHECK(found(R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]})").empty());
  CHECK(found(R"({"a": 1, "b": 2, "a": 3})") == "f: duplicate key 'a'");
  CHECK(found(R"({"a": {"b": [], "b": 1}})") == "f: duplicate key 'b'");
  CHECK(found(R"({"b": {"a": 1}, "a": 2, "\u0061": 3})") == "f: duplicate key 'a'");
  CHECK(
      found("{\"" + std::string(500, 'k') + "\": 1, \"" + std::string(500, 'k') + "\": 2}").size() <
      150);
}

TEST_CASE("levels of lists and objects", "[fast]") {
  const std::string deep = "f: nested deeper than 3 levels";
  CHECK(found(R"({"a": [{"b": 1}, 2], "c": [[]]})").empty());
  CHECK(found(R"({"a": [{"b": []}]})") == deep);
  CHECK(found("[[[[") == deep);
  CHECK(found("[[[[]]]]", 4).empty());
  CHECK(found(std::string(100'000, '[')) == deep);
}

TEST_CASE("a zero byte does not end the text", "[fast]") {
  CHECK(found("{\"a\": 1}\0{\"b\": 2}"s) == "f: byte 8: expected JSON, found a zero byte");
  CHECK(found("{\"a\": 1}\0"s) == "f: byte 8: expected JSON, found a zero byte");
  CHECK(found("\0"s) == "f: byte 0: expected JSON, found a zero byte");
}

TEST_CASE("the escape of a zero byte is refused in names and texts", "[fast]") {
  const auto refused = [](const std::string& place) {
    return "f: " + place + ": expected no zero byte (\\u0000) in a text";
  };
  CHECK(found(R"({"format": "int4\u0000"})") == refused("line 1 column 17"));
  CHECK(found("{\n\"a\\u0000\": 1}") == refused("line 2 column 3"));
  CHECK(found(R"(["\\\u0000"])") == refused("line 1 column 5"));
  CHECK(
      found(R"({"a\\u0000": "\\u0000\u0001\u0030"})").empty());  // a backslash, then plain letters
}

TEST_CASE("the number of values is bounded, since each takes more memory than its text", "[fast]") {
  constexpr std::size_t kMost = std::size_t{1} << 22;  // with the list itself
  std::string text = "[0";
  for (std::size_t i = 2; i < kMost; ++i) text += ",0";
  CHECK(parse_guarded(text + "]", "f", 3).size() == kMost - 1);
  CHECK_THROWS_WITH(parse_guarded(text + ",0]", "f", 3), "f: more than 4194304 values");
}

TEST_CASE("the first mistake in the syntax is reported, with what was read so far", "[fast]") {
  const auto mistake = [](const std::string& text) {
    try {
      parse_guarded(text, "f", 3);
    } catch (const JsonSyntaxError& error) {
      return std::pair(error.byte, error.out_of_range);
    }
    return std::pair(std::size_t{9999}, false);
  };
  CHECK(mistake("") == std::pair(std::size_t{1}, false));
  CHECK(mistake("{\"a\": 1,, \"a\": 2}") == std::pair(std::size_t{9}, false));
  CHECK(mistake("[1e999, [[[[") == std::pair(std::size_t{6}, true));
  CHECK(mistake("\xff") == std::pair(std::size_t{1}, false));
  CHECK(mistake("{\"a\"") == std::pair(std::size_t{5}, false));
  CHECK(mistake("1 2") == std::pair(std::size_t{3}, false));
}

}  // namespace
}  // namespace numemu::json_text_test
