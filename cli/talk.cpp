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

/// Bytes of the UTF-8 character that starts here; 0 where none does.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = lead < 0x80   ? 1
                            : lead < 0xc2 ? 0
                            : lead < 0xe0 ? 2
                            : lead < 0xf0 ? 3
                            : lead < 0xf5 ? 4
                                          : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  const std::string_view rest = text.substr(1, bytes - 1);
  return std::all_of(rest.begin(), rest.end(), is_continuation) ? bytes : 0;
}

/// Whether the character breaks a line (U+2028, U+2029), turns the direction of what follows
/// (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) or is a byte order mark (U+FEFF).
bool is_invisible_control(std::string_view character) {
  if (character == "\u200e" || character == "\u200f" || character == "\ufeff") return true;
  return (character >= "\u2028" && character <= "\u202e") ||
         (character >= "\u2066" && character <= "\u2069");
}

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

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(1, character_bytes(text));
    const char c = text[0];
    const bool known = character_bytes(text) > 0;
    // U+0080 to U+009F are control characters too.
    const bool control =
        static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
        (bytes == 2 && c == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0) ||
        is_invisible_control(text.substr(0, bytes));
    if (known && !control) {
      out.append(text.substr(0, bytes));
    } else {
      out += c == '\n' || c == '\r' || c == '\t' ? ' ' : '?';
    }
    text.remove_prefix(bytes);
  }
  return out;
}

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
