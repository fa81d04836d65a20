// Grammar: numpy/lib/format.py (NEP 1). Only what numpy itself writes is accepted.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/npy_header.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu {
namespace {

struct Code {
  std::string_view text;  ///< as numpy writes it, without the byte order
  ArrayType type;
};

constexpr std::array<Code, 11> kCodes = {{{"i1", ArrayType::int8},
                                          {"u1", ArrayType::uint8},
                                          {"i2", ArrayType::int16},
                                          {"u2", ArrayType::uint16},
                                          {"i4", ArrayType::int32},
                                          {"u4", ArrayType::uint32},
                                          {"i8", ArrayType::int64},
                                          {"u8", ArrayType::uint64},
                                          {"f2", ArrayType::float16},
                                          {"f4", ArrayType::float32},
                                          {"f8", ArrayType::float64}}};

/// What a refused type is called in Python.
std::string_view kind_of(char letter) {
  switch (letter) {
    case 'b':
      return " (bool)";
    case 'c':
      return " (complex)";
    case 'O':
      return " (Python objects)";
    case 'S':
    case 'U':
      return " (text)";
    case 'V':
      return " (raw bytes, which numpy writes for bfloat16 and float8: save x.view('uint8') or "
             "x.view('uint16'))";
    default:
      return "";
  }
}

class Parser {
 public:
  Parser(const std::string& path, std::string_view text, std::int64_t first_byte, bool with_text)
      : path_(path), text_(text), first_byte_(first_byte), with_text_(with_text) {}

  NpyHeader read() {
    expect('{');
    while (!accept('}')) {
      read_item();
      if (!accept(',') && peek() != '}') fail("expected , or }");
    }
    while (peek() == ' ') ++at_;
    if (peek() == '\n') ++at_;
    if (at_ != text_.size()) fail("expected the header to end in spaces and one newline");
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) fail(fmt::format("expected a key '{}'", kKeys[i]));
    }
    return header_;
  }

 private:
  static constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(
        fmt::format("{}: byte {}: {}", path_, first_byte_ + static_cast<std::int64_t>(at_), text));
  }
  /// '\0', which no header holds, at the end.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    while (peek() == ' ') ++at_;
    if (peek() != c) return false;
    ++at_;
    while (peek() == ' ') ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected {}", c));
  }
  bool accept_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void read_item() {
    const std::string_view key = read_string();
    std::size_t k = 0;
    while (k < kKeys.size() && kKeys[k] != key) ++k;
    if (k == kKeys.size()) fail("expected the keys 'descr', 'fortran_order' and 'shape' only");
    if (seen_[k]) fail(fmt::format("expected the key '{}' once", key));
    seen_[k] = true;
    expect(':');
    if (k == 0) {
      read_type();
    } else if (k == 1) {
      header_.fortran_order = accept_word("True");
      if (!header_.fortran_order && !accept_word("False"))
        fail("fortran_order: expected True or False");
    } else {
      read_shape();
    }
  }

  std::string_view read_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string in quotes");
    const std::size_t begin = ++at_;
    while (peek() != quote) {
      const char c = peek();
      if (c < ' ' || c > '~' || c == '\\') fail("expected a string of plain letters");
      ++at_;
    }
    return text_.substr(begin, at_++ - begin);
  }

  void read_type() {
    constexpr std::string_view kExpected =
        "descr: expected one of the types int8..int64, uint8..uint64, float16..float64";
    if (peek() == '[') fail(fmt::format("{}, found a structured type", kExpected));
    const std::size_t begin = at_;
    const std::string_view descr = read_string();
    const std::string_view code = descr.substr(descr.empty() ? 0 : 1);
    for (const Code& known : kCodes) {
      if (known.text != code) continue;
      const bool wide = bytes_of(known.type) > 1;
      if (descr[0] != '<' && descr[0] != (wide ? '>' : '|')) break;
      header_.type = known.type;
      header_.big_endian = descr[0] == '>';
      return;
    }
    if (with_text_ && descr.starts_with("|S")) {
      const char* end = descr.data() + descr.size();
      const auto [at, error] = std::from_chars(descr.data() + 2, end, header_.text_bytes);
      header_.type = ArrayType::uint8;
      if (error == std::errc{} && at == end && header_.text_bytes > 0) return;
    }
    at_ = begin;
    fail(fmt::format("{}, found '{}'{}", kExpected, descr.substr(0, 20),
                     code.empty() ? "" : kind_of(code[0])));
  }

  void read_shape() {
    expect('(');
    while (!accept(')')) {
      if (header_.shape.size() == kMostAxes)
        fail(fmt::format("expected at most {} axes", kMostAxes));
      header_.shape.push_back(read_extent());
      const bool comma = accept(',');
      // (3) is a number in Python, (3,) a shape.
      if (!comma && (peek() != ')' || header_.shape.size() == 1)) fail("shape: expected ,");
    }
  }

  std::int64_t read_extent() {
    const std::size_t begin = at_;
    std::int64_t extent = 0;
    bool overflow = false;
    while (peek() >= '0' && peek() <= '9') {
      overflow |= __builtin_mul_overflow(extent, 10, &extent);
      overflow |= __builtin_add_overflow(extent, text_[at_++] - '0', &extent);
    }
    const bool digits = at_ > begin;
    if (!digits || overflow) {
      at_ = begin;
      fail("shape: expected integers of 0..2^63-1");
    }
    return extent;
  }

  const std::string& path_;
  std::string_view text_;
  std::int64_t first_byte_;
  bool with_text_;
  std::size_t at_ = 0;
  std::array<bool, 3> seen_ = {};
  NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(const std::string& path, std::string_view text, std::int64_t first_byte,
                           bool with_text) {
  return Parser(path, text, first_byte, with_text).read();
}

std::string format_npy_header(ArrayType type, const ArrayShape& shape) {
  constexpr std::size_t kPreamble = 10, kAlignment = 64;
  std::string descr;
  for (const Code& code : kCodes) {
    if (code.type == type) descr = (bytes_of(type) > 1 ? "<" : "|") + std::string(code.text);
  }
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 descr, joined(shape, ", "), shape.size() == 1 ? "," : "");
  text.append(kAlignment - 1 - (kPreamble + text.size()) % kAlignment, ' ');
  text += '\n';
  const std::size_t length = text.size();
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 255) +
         static_cast<char>(length >> 8) + text;
}

}  // namespace numemu
