// Lists of texts and of integers, empty ones too.
#include "formats/joined.hpp"

#include <vector>

#include "tests/catch.hpp"

namespace joined_test {

using namespace numemu;

TEST_CASE("joined: what stands between two elements, and nowhere else", "[fast]") {
  const std::vector<std::string> names = {"a", "", "c"};
  CHECK(joined(names, ", ") == "a, , c");
  CHECK(joined(std::vector<std::string_view>{"one"}, " or ") == "one");
  CHECK(joined(std::vector<std::string>{}, ",").empty());
  const char* const words[] = {"x", "y"};
  CHECK(joined(words, "") == "xy");
  CHECK(joined(std::set<std::string>{"b", "a"}, "; ") == "a; b");
  CHECK(joined(std::vector<std::int64_t>{-3, INT64_MAX}, "x") == "-3x9223372036854775807");
  CHECK(joined(std::vector<int>{1, 2, 3}, " ") == "1 2 3");
}

TEST_CASE("joined_first: how many elements are left out, where some are", "[fast]") {
  const std::vector<std::string> names = {"a", "b", "c"};
  CHECK(joined_first(names, ", ", 3) == "a, b, c");
  CHECK(joined_first(names, ", ", 2) == "a, b and 1 more");
  CHECK(joined_first(names, "; ", 1, "; {} others") == "a; 2 others");
  CHECK(joined_first({}, ", ", 0).empty());
}

}  // namespace joined_test
