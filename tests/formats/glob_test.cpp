// Globs: examples, and every short pattern and name against a table.
#include "formats/glob.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace glob_test {

using namespace numemu;

TEST_CASE("globs", "[fast]") {
  CHECK(glob_match("*.fc", "block.fc"));
  CHECK_FALSE(glob_match("*.fc", "fc"));
  CHECK(glob_match("conv?", "conv1"));
  CHECK_FALSE(glob_match("conv?", "conv12"));
  CHECK(glob_match("*", ""));
  CHECK(glob_match("a*b*c", "axxbyyc"));
}

TEST_CASE("globs agree with a table of prefixes on all short patterns and names", "[fast]") {
  const auto by_table = [](const std::string& pattern, const std::string& name) {
    // matches[n]: the pattern so far matches the first n letters.
    std::vector<bool> matches(name.size() + 1, false);
    matches[0] = true;
    for (const char c : pattern) {
      std::vector<bool> next(name.size() + 1, false);
      for (std::size_t n = 0; n <= name.size(); ++n) {
        next[n] = c == '*' ? matches[n] || (n > 0 && next[n - 1])
                           : n > 0 && matches[n - 1] && (c == '?' || c == name[n - 1]);
      }
      matches = next;
    }
    return matches.back() == true;
  };
  const auto words = [](const std::string& letters, std::size_t longest) {
    std::vector<std::string> all{""};
    for (std::size_t from = 0, length = 0; length < longest; ++length) {
      const std::size_t end = all.size();
      for (; from < end; ++from)
        for (const char c : letters) all.push_back(all[from] + c);
    }
    return all;
  };
  const std::vector<std::string> names = words("ab", 6);
  std::size_t matched = 0;
  for (const std::string& pattern : words("ab*?", 5)) {
    for (const std::string& name : names) {
      const bool expected = by_table(pattern, name);
      matched += expected;
      if (glob_match(pattern, name) != expected) FAIL(pattern << " against " << name);
    }
  }
  CHECK(matched > 10'000);
}

TEST_CASE("a glob of many stars takes no time on a long name", "[fast]") {
  std::string stars;
  for (int i = 0; i < 1000; ++i) stars += "*a";
  CHECK_FALSE(glob_match(stars, std::string(999, 'a')));
  CHECK(glob_match(stars, std::string(1000, 'a')));
  std::string other_end(10'000, 'a');
  other_end.back() = 'b';
  CHECK_FALSE(glob_match(stars, other_end));
}

}  // namespace glob_test
