// fputs where fmt::print would throw: a full disk behind stderr must not end a sweep.
#include "cli/talk.hpp"

#include <algorithm>
#include <cstdio>

namespace numemu::cli {
namespace {

constexpr std::size_t kLongestLine = 299;
constexpr std::size_t kLongestWord = 100;
constexpr std::string_view kGap = " ... ";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// The first and the last of `text`, `longest` bytes with a gap between them.
std::string ends_of(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  std::size_t head = (longest - kGap.size()) / 2 + 1, tail = text.size() + head + kGap.size();
  tail -= longest;
  while (head > 0 && is_continuation(text[head])) --head;
  while (tail < text.size() && is_continuation(text[tail])) ++tail;
  return std::string(text.substr(0, head)).append(kGap).append(text.substr(tail));
}

}  // namespace

std::string shortened(std::string text, std::size_t longest) {
  if (text.size() <= longest) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    out += ends_of(std::string_view(text).substr(at, end - at), kLongestWord);
    if (end < text.size()) out += ' ';
    at = end + 1;
  }
  return ends_of(out, longest);
}

void write_talk(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void say_line(std::string_view text) { write_talk(shortened(harmless(text), kLongestLine) + "\n"); }

}  // namespace numemu::cli
