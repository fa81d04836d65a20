// NAME(ARGUMENTS) taken apart; patterns of names.
#include "formats/call_text.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace call_text_test {

using namespace numemu;

TEST_CASE("call text: a name and its arguments", "[fast]") {
  const CallText call = parse_call(" delayed( 16 , mse ) ");
  CHECK(call.name == "delayed");
  CHECK(call.arguments == std::vector<std::string>{"16", "mse"});
  CHECK(parse_call("dynamic").arguments.empty());
  CHECK(parse_call("dynamic()").arguments == std::vector<std::string>{""});
  CHECK(parse_call("f(a,)").arguments == std::vector<std::string>{"a", ""});
  CHECK(parse_call("f(g(1,2),h(i(3),4),5)").arguments ==
        std::vector<std::string>{"g(1,2)", "h(i(3),4)", "5"});
}

TEST_CASE("call text: what is no call is a name as a whole", "[fast]") {
  for (const char* text : {"f(1", "(1)", "f(1)x", ""}) {
    INFO(text);
    CHECK(parse_call(text).name == text);
    CHECK(parse_call(text).arguments.empty());
  }
}

TEST_CASE("call text: numbers take the whole text", "[fast]") {
  CHECK(number_argument("99.9") == 99.9);
  CHECK(number_argument("1e3") == 1000.0);
  for (const char* text : {"", "1x", " 1", "inf", "nan", "1e999", "0x10"})
    CHECK_FALSE(number_argument(text));
  CHECK(whole_argument("16", 1, 16) == 16);
  for (const char* text : {"0", "17", "1.0", "-1", "", "1e1", "99999999999999999999"})
    CHECK_FALSE(whole_argument(text, 1, 16));
}

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

}  // namespace call_text_test
