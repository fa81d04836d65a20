#include "api/text/lists.hpp"

#include <fmt/format.h>

#include <string_view>

#include "formats/error.hpp"

namespace numemu::api {
namespace {

constexpr std::size_t kMostTexts = 100000;
constexpr int kWidestOfAll = 8;  // bits

/// Pieces of `text` between commas outside all brackets.
std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '{') ++depth;
    if (c == ')' || c == '}') --depth;
    if (depth < 0) break;
    if (c == ',' && depth == 0) {
      pieces.emplace_back();
    } else if (c != ' ' || !pieces.back().empty()) {
      pieces.back() += c;
    }
  }
  if (depth != 0) throw usage_error(fmt::format("'{}': brackets that do not match", text));
  return pieces;
}

void expand_braces(const std::string& text, std::vector<std::string>& out) {
  const std::size_t open = text.find('{');
  if (open == std::string::npos) {
    if (out.size() >= kMostTexts)
      throw usage_error(fmt::format("a list of more than {} entries", kMostTexts));
    out.push_back(text);
    return;
  }
  std::size_t close = open;
  for (int depth = 0; close < text.size(); ++close) {
    if (text[close] == '{') ++depth;
    if (text[close] == '}' && --depth == 0) break;
  }
  if (close == text.size()) throw usage_error(fmt::format("'{}': braces that do not match", text));
  for (const std::string& choice : split_list(text.substr(open + 1, close - open - 1)))
    expand_braces(text.substr(0, open) + choice + text.substr(close + 1), out);
}

/// Every described scalar format of 3 to `bits` bits, each encoding once.
std::vector<std::string> described_formats(int bits) {
  std::vector<std::string> names;
  for (int b = 3; b <= bits; ++b) {
    names.push_back(fmt::format("int{}", b));
    for (int e = 1; e < b; ++e)
      for (const char* specials : {"+finite", "+nan1", "+ieee", "+finite+nosub"}) {
        // With few codes the specials may leave nothing but zero.
        if (e == 1 && std::string_view(specials) == "+ieee") continue;
        if (b - 1 - e == 0 && e < 3 && std::string_view(specials) != "+finite") continue;
        if (b - 1 - e == 0 && std::string_view(specials) == "+finite+nosub") continue;
        names.push_back(fmt::format("e{}m{}{}", e, b - 1 - e, specials));
      }
    for (int p = 1; p < b; ++p)
      for (const char* kind : {"se", "sf"})
        names.push_back(fmt::format("binary{}p{}{}", b, p, kind));
    for (int es = 0; es <= 3; ++es) names.push_back(fmt::format("posit({},{})", b, es));
    for (int f = 0; f + 2 <= b; ++f)
      if ((1 << (b - 2)) - 1 <= 126 << f) names.push_back(fmt::format("log({},{})", b, f));
  }
  return names;
}

}  // namespace

std::vector<std::string> expanded_list(const std::string& text) {
  std::vector<std::string> all;
  for (const std::string& piece : split_list(text)) expand_braces(piece, all);
  return all;
}

std::vector<std::string> expanded_lists(const std::vector<std::string>& lists) {
  std::vector<std::string> all;
  for (const std::string& list : lists)
    for (std::string& text : expanded_list(list)) all.push_back(std::move(text));
  return all;
}

std::vector<std::string> format_list(const std::vector<std::string>& lists,
                                     const std::string& option) {
  std::vector<std::string> all;
  for (const std::string& text : expanded_lists(lists)) {
    if (!text.starts_with("all:")) {
      all.push_back(text);
      continue;
    }
    const std::string width = text.substr(4);
    if (width.size() != 1 || width[0] < '3' || width[0] > '0' + kWidestOfAll)
      throw usage_error(
          fmt::format("{}: '{}', expected all:3 to all:{}", option, text, kWidestOfAll));
    for (std::string& name : described_formats(width[0] - '0')) all.push_back(std::move(name));
  }
  return all;
}

}  // namespace numemu::api
