#include "emu/oracle/files/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/error.hpp"

namespace numemu::oracle {

namespace {

constexpr char kDigits[] = "0123456789ABCDEF";

/// A word of one code, most significant digit first.
char* put_code(char* at, int digits, std::uint64_t code, std::uint64_t unknown) {
  for (int d = digits - 1; d >= 0; --d)
    *at++ = (unknown >> (4 * d) & 15) != 0 ? 'X' : kDigits[code >> (4 * d) & 15];
  return at;
}

/// Bits [low, low + 4) of codes side by side, element 0 lowest.
unsigned packed_digit(const Field& field, const std::uint64_t* codes, std::int64_t low) {
  unsigned digit = 0;
  for (int bit = 0; bit < 4; ++bit) {
    const std::int64_t at = low + bit, element = at / field.bits;
    if (element < field.count)
      digit |= static_cast<unsigned>(codes[element] >> (at % field.bits) & 1) << bit;
  }
  return digit;
}

}  // namespace

void append_words(const Field& field, const Records& records, int f, std::int64_t i,
                  std::string& text) {
  const auto column = static_cast<std::size_t>(f);
  const std::uint64_t* codes = records.columns[column].data() + i * field.count;
  const bool known = records.unknown[column].empty();
  const std::uint64_t* unknown = known ? nullptr : records.unknown[column].data() + i * field.count;
  const std::int64_t digits = field.digits();
  const std::size_t begin = text.size();
  text.resize(begin + static_cast<std::size_t>(field.words() * (digits + 1) - 1));
  char* at = text.data() + begin;
  if (field.packed) {
    for (std::int64_t d = digits - 1; d >= 0; --d) {
      const bool is_known = known || packed_digit(field, unknown, 4 * d) == 0;
      *at++ = is_known ? kDigits[packed_digit(field, codes, 4 * d)] : 'X';
    }
    return;
  }
  for (std::int64_t e = 0; e < field.count; ++e) {
    if (e != 0) *at++ = ' ';
    at = put_code(at, static_cast<int>(digits), codes[e], known ? 0 : unknown[e]);
  }
}

void append_text(const Layout& layout, const Records& records, std::string& text) {
  for (std::int64_t i = 0; i < records.size; ++i) {
    for (std::size_t f = 0; f < layout.size(); ++f) {
      if (f != 0) text += ' ';
      append_words(layout[f], records, static_cast<int>(f), i, text);
    }
    if (const std::string_view name = records.class_name(i); !name.empty())
      text.append(" # ").append(name);
    text += '\n';
  }
}

namespace {

/// A line is turned as a whole; longer ones are refused.
constexpr std::size_t kLongest = std::size_t{1} << 22;

/// "in,out,class" and "3F,40,mixed" as "3F 40 # mixed", and names as nothing.
std::string of_csv(std::string_view line) {
  const std::size_t comma = line.rfind(',');
  const std::string_view last = line.substr(comma + 1);
  if (last == "class") return "";
  std::string text(line.substr(0, comma));
  std::replace(text.begin(), text.end(), ',', ' ');
  return last.empty() ? text : text.append(" # ").append(last);
}

class Turner {
 public:
  Turner(std::string name, ByteReader bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  std::size_t read(char* to, std::size_t most) {
    while (given_ == turned_.size() && !ended_) turn();
    const std::size_t part = std::min(most, turned_.size() - given_);
    std::copy_n(turned_.data() + given_, part, to);
    given_ += part;
    return part;
  }

 private:
  /// Turns every whole line that is there.
  void turn() {
    constexpr std::size_t kPiece = 1 << 16;
    const std::size_t before = rest_.size();
    rest_.resize(before + kPiece);
    const std::size_t got = bytes_(rest_.data() + before, kPiece);
    rest_.resize(before + got);
    ended_ = got == 0;
    turned_.clear();
    given_ = 0;
    std::size_t begin = 0;
    for (std::size_t end; (end = rest_.find('\n', std::max(begin, before))) != std::string::npos ||
                          (ended_ && (end = rest_.size()) > begin);
         begin = std::min(end + 1, rest_.size())) {
      ++line_;
      append(std::string_view(rest_).substr(begin, end - begin));
      if (end != rest_.size()) turned_ += '\n';
    }
    rest_.erase(0, begin);
    if (rest_.size() > kLongest) {
      throw Error(fmt::format("{}: line {}: expected at most {} bytes, found a longer line", name_,
                              line_ + 1, kLongest));
    }
  }

  void append(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('{')) {
      append_json(line);
    } else if (line.starts_with('#') || line.find(',') == std::string_view::npos) {
      turned_ += line;
    } else {
      turned_ += of_csv(line);
    }
  }

  /// The values of an object of texts and lists of texts.
  void append_json(std::string_view line) {
    bool is_class = false;
    while (true) {
      const std::size_t begin = line.find('"');
      if (begin == std::string_view::npos) return;
      std::size_t end = begin + 1;
      std::string text;
      for (; end < line.size() && line[end] != '"'; ++end) {
        end += line[end] == '\\';  // of \" and \\, all that there is in headers
        if (end < line.size()) text += line[end];
      }
      if (end >= line.size()) {
        throw Error(fmt::format("{}: line {}: expected the end of a text, found that of the line",
                                name_, line_));
      }
      line.remove_prefix(end + 1);
      const std::size_t next = line.find_first_not_of(" \t");
      if (next != std::string_view::npos && line[next] == ':') {
        is_class = text == "class";
      } else if (!is_class || !text.empty()) {
        turned_.append(is_class ? "# " : "").append(text) += ' ';
      }
    }
  }

  std::string name_;
  ByteReader bytes_;
  std::string rest_, turned_;  ///< not yet turned, and turned of which `given_` bytes are given
  std::size_t given_ = 0;
  std::int64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace

ByteReader as_text(std::string name, ByteReader bytes) {
  auto turner = std::make_shared<Turner>(std::move(name), std::move(bytes));
  return [turner](char* to, std::size_t most) { return turner->read(to, most); };
}

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
