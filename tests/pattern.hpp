// POSIX extended regular expressions by the C library: <regex> costs a file 3 to 6 s of compile
// time.
#pragma once
#include <regex.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace numemu::test {

class Pattern {
 public:
  explicit Pattern(const std::string& expression) {
    if (::regcomp(&compiled_, expression.c_str(), REG_EXTENDED) != 0)
      throw std::invalid_argument("not a regular expression: " + expression);
  }
  ~Pattern() { ::regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// The leftmost longest match and its groups (empty where a group takes no part), or nothing;
  /// removes from `text` everything up to the end of the match.
  std::vector<std::string> next(std::string& text) const {
    std::vector<::regmatch_t> found(compiled_.re_nsub + 1);
    if (::regexec(&compiled_, text.c_str(), found.size(), found.data(), 0) != 0) return {};
    std::vector<std::string> groups;
    for (const ::regmatch_t& group : found) {
      const auto size = static_cast<std::size_t>(group.rm_eo - group.rm_so);
      groups.push_back(group.rm_so < 0 ? ""
                                       : text.substr(static_cast<std::size_t>(group.rm_so), size));
    }
    text.erase(0, static_cast<std::size_t>(found[0].rm_eo));
    return groups;
  }
  /// The groups where the whole text matches, else nothing.
  std::vector<std::string> whole(const std::string& text) const {
    std::string rest = text;
    const std::vector<std::string> groups = next(rest);
    return !groups.empty() && groups[0] == text ? groups : std::vector<std::string>{};
  }

 private:
  ::regex_t compiled_;
};

}  // namespace numemu::test
