// The well-formed sequences of RFC 3629, section 4.
#include "formats/storage/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/error.hpp"

namespace numemu {
namespace {

/// Bytes of the character that `text` begins with; 0 where it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  // The second byte keeps out overlong forms, surrogates and what lies beyond U+10FFFF.
  if (first >= 0xe0 && first <= 0xef) {
    const bool in_range = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second <= 0x9f);
    return in_range && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool in_range = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second <= 0x8f);
    return in_range && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// Whether the character breaks a line (U+2028, U+2029), turns the direction of what follows
/// (U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) or is a byte order mark (U+FEFF).
bool is_invisible_control(std::string_view character) {
  if (character == "\u200e" || character == "\u200f" || character == "\ufeff") return true;
  return (character >= "\u2028" && character <= "\u202e") ||
         (character >= "\u2066" && character <= "\u2069");
}

}  // namespace

std::string utf8_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

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

void require_utf8(std::string_view what, std::string_view text) {
  const std::string valid = utf8_text(text);
  if (valid == text) return;
  throw Error(
      fmt::format("{}: expected a name in UTF-8, as results store it, found '{}'", what, valid));
}

}  // namespace numemu
