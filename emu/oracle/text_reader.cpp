#include "emu/oracle/text_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

constexpr std::size_t kChunk = 1 << 16;
constexpr std::size_t kLongestComment = 4096;
constexpr std::uint8_t kUnknownDigit = 16, kNoDigit = 17;

constexpr std::array<std::uint8_t, 256> kDigitOf = [] {
  std::array<std::uint8_t, 256> of{};
  of.fill(kNoDigit);
  for (int d = 0; d < 10; ++d) of[static_cast<std::size_t>('0' + d)] = static_cast<std::uint8_t>(d);
  for (int d = 0; d < 6; ++d) {
    of[static_cast<std::size_t>('a' + d)] = of[static_cast<std::size_t>('A' + d)] =
        static_cast<std::uint8_t>(10 + d);
  }
  for (const char c : {'x', 'X', 'z', 'Z', '?'}) of[static_cast<std::size_t>(c)] = kUnknownDigit;
  return of;
}();

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool is_comment(std::string_view text) { return text.starts_with('#') || text.starts_with("//"); }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// The next word, which the text loses; empty at the end or before a comment.
std::string_view next_word(std::string_view& text) {
  std::size_t begin = 0;
  while (begin < text.size() && is_blank(text[begin])) ++begin;
  text.remove_prefix(begin);
  if (is_comment(text)) return {};
  const auto ends_before = [text](std::size_t i) {
    return is_blank(text[i]) || text[i] == '#' ||
           (text[i] == '/' && i + 1 < text.size() && text[i + 1] == '/');
  };
  std::size_t end = 0;
  while (end < text.size() && !ends_before(end)) ++end;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::int64_t count_words(std::string_view text) {
  std::int64_t words = 0;
  while (!next_word(text).empty()) ++words;
  return words;
}

std::size_t longest_line(const Layout& layout) {
  std::size_t longest = 0;
  for (const Field& field : layout)
    longest += static_cast<std::size_t>(field.words() * (field.digits() + 1));
  return 2 * longest + kLongestComment;
}

std::int64_t words_of(const Layout& layout, bool with_optional) {
  std::int64_t words = 0;
  for (const Field& field : layout) words += with_optional || !field.optional ? field.words() : 0;
  return words;
}

}  // namespace

std::string shown(std::string_view word) {
  constexpr std::size_t kShown = 40;
  std::string text(word.substr(0, kShown));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return word.size() > kShown ? text + "..." : text;
}

ByteReader as_utf8(std::string name, ByteReader bytes) {
  static constexpr std::string_view kUtf8 = "\xef\xbb\xbf", kZip = "PK\x03\x04";
  return [name = std::move(name), bytes = std::move(bytes), first = std::string(), begun = false](
             char* to, std::size_t most) mutable {
    while (!begun) {
      char some[4];
      const std::size_t got = bytes(some, sizeof some - first.size());
      first.append(some, got);
      if (first.starts_with("\xff\xfe") || first.starts_with("\xfe\xff"))
        throw Error(name + ": expected UTF-8 text, found UTF-16");
      if (first.starts_with(kZip))
        throw Error(name +
                    ": expected text, found a zip archive: the name of an npz file must "
                    "end in .npz");
      begun = got == 0 || first.size() == sizeof some || first.find('\n') != std::string::npos;
      if (begun && first.starts_with(kUtf8)) first.erase(0, kUtf8.size());
    }
    if (first.empty()) return bytes(to, most);
    const std::size_t part = first.copy(to, most);
    first.erase(0, part);
    return part;
  };
}

TextReader::TextReader(std::string name, ByteReader bytes, std::string_view class_mark)
    : name_(std::move(name)), class_mark_(class_mark), bytes_(std::move(bytes)) {
  // Not beyond the first line: who answers questions sends no more before the next.
  while (!ended_ && end_ < kLongestComment &&
         std::string_view(buffer_.data(), end_).find('\n') == std::string_view::npos)
    fill();
  constexpr std::string_view kSlashes = "//";
  const std::string_view first(buffer_.data(), end_);
  if (is_header(first)) {
    header_ = next_line(kLongestComment).value();
  } else if (first.starts_with(kSlashes) &&
             first.substr(kSlashes.size()).starts_with(kHeaderBegin.substr(1))) {
    header_ = "#" + std::string(next_line(kLongestComment).value().substr(kSlashes.size()));
  }
}

void TextReader::fail(const std::string& text) const {
  throw Error(fmt::format("{}: line {}: {}", name_, line_, text));
}

void TextReader::fill() {
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + kChunk) buffer_.resize(end_ + kChunk);
  const std::size_t count = bytes_(buffer_.data() + end_, kChunk);
  ended_ = count == 0;
  end_ += count;
}

std::optional<std::string_view> TextReader::next_line(std::size_t longest) {
  std::size_t searched = 0;  // bytes without an end of a line
  while (true) {
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    const std::size_t length = rest.find('\n', searched);
    if (length == std::string_view::npos) searched = rest.size();
    if (searched > longest || (length != std::string_view::npos && length > longest)) {
      ++line_;
      fail(fmt::format("expected at most {} bytes, found a longer line", longest));
    }
    if (length != std::string_view::npos || ended_) {
      if (rest.empty()) return std::nullopt;
      ++line_;
      begin_ += std::min(length, rest.size() - 1) + 1;
      return without_blanks(rest.substr(0, length));
    }
    fill();
  }
}

bool TextReader::read(const Layout& layout, std::int64_t most, Records& records) {
  records.reset(layout, most);
  const std::size_t longest = longest_line(layout);
  std::int64_t i = 0;
  while (i < most) {
    const auto line = next_line(longest);
    if (!line) break;
    if (!line->empty() && !is_comment(*line)) parse(layout, *line, i++, records);
  }
  records.resize(layout, i);
  return i != 0;
}

void TextReader::check_words(const Layout& layout, std::string_view line) {
  const std::int64_t all = words_of(layout, true), fewer = words_of(layout, false);
  const std::int64_t found = count_words(line);
  if (!std::exchange(decided_, true)) has_optional_ = found != fewer || all == fewer;
  const std::int64_t expected = has_optional_ ? all : fewer;
  if (found == expected) return;
  std::string names;
  for (const Field& field : layout) {
    if (field.optional && !has_optional_) continue;
    names += names.empty() ? "" : ", ";
    names += field.words() == 1 ? field.name : fmt::format("{} {}", field.words(), field.name);
  }
  fail(fmt::format("expected {} words ({}), found {}", expected, names, found));
}

void TextReader::parse_word(const Field& field, std::string_view word, std::uint64_t* codes,
                            Records& records, std::size_t column, std::size_t at) {
  const auto wrong = [&](std::string_view expected) {
    fail(fmt::format("{}: expected {}, found '{}'", field.name, expected, shown(word)));
  };
  const std::int64_t bits = field.packed ? field.count * field.bits : field.bits;
  std::int64_t low = 0;  // bit of the digit
  for (std::size_t c = word.size(); c-- > 0;) {
    if (word[c] == '_') continue;
    const std::uint8_t digit = kDigitOf[static_cast<std::uint8_t>(word[c])];
    if (digit == kNoDigit) wrong("hexadecimal digits");
    if (low >= bits) wrong(fmt::format("at most {} digits", field.digits()));
    const bool known = digit != kUnknownDigit;
    auto& unknown = records.unknown[column];
    if (!known && unknown.empty()) unknown.assign(records.columns[column].size(), 0);
    const std::int64_t whole = field.packed ? low / field.bits : 0,
                       shift = low - whole * field.bits;
    if (known && shift + 4 <= field.bits) {  // the digit lies in one code
      codes[whole] |= std::uint64_t{digit} << shift;
      low += 4;
      continue;
    }
    for (int bit = 0; bit < 4; ++bit) {
      const std::int64_t place = low + bit, element = place / field.bits;
      if (known && (digit >> bit & 1) == 0) continue;
      if (place >= bits) {
        if (known) wrong(fmt::format("a code of {} bits", bits));
        continue;
      }
      const std::uint64_t one = std::uint64_t{1} << (place % field.bits);
      (known ? codes[element] : unknown[at + static_cast<std::size_t>(element)]) |= one;
    }
    low += 4;
  }
  if (low == 0) wrong("hexadecimal digits");
}

void TextReader::parse(const Layout& layout, std::string_view line, std::int64_t i,
                       Records& records) {
  check_words(layout, line);
  records.line[static_cast<std::size_t>(i)] = line_;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const Field& field = layout[f];
    if (field.optional && !has_optional_) continue;
    const std::int64_t step = field.packed ? field.count : 1;
    for (std::int64_t e = 0; e < field.count; e += step) {
      const auto at = static_cast<std::size_t>(i * field.count + e);
      parse_word(field, next_word(line), records.columns[f].data() + at, records, f, at);
    }
  }
  const std::string_view rest = without_blanks(line);
  if (!rest.starts_with(class_mark_)) return;
  const std::string_view comment = without_blanks(rest.substr(class_mark_.size()));
  records.class_of[static_cast<std::size_t>(i)] =
      records.class_number(shown(comment.substr(0, comment.find_first_of(" \t"))));
}

}  // namespace numemu::oracle
