// Grammar: numpy/lib/format.py (NEP 1). Only what numpy itself writes is accepted. The data go
// between the file and their final place without a copy; the rare orders are turned after.
#include "formats/storage/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
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
        "descr: expected one of the types int8..int64, uint8..uint64, float16..float64, bool";
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
    if (descr == "|b1") {
      header_.type = ArrayType::int8;
      header_.truth = true;
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

std::optional<std::int64_t> no_truth_value(const NpyHeader& header, std::string_view data) {
  if (!header.truth) return std::nullopt;
  const auto found = std::ranges::find_if(data, [](char c) { return c != 0 && c != 1; });
  if (found == data.end()) return std::nullopt;
  return found - data.begin();
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

namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored as they are");

constexpr std::string_view kMagic = "\x93NUMPY";
/// A header of 64 axes has at most 1,400 characters; longer ones belong to structured types.
constexpr std::int64_t kLongestHeader = 65535;

NpyHeader read_header(InputFile& file) {
  const std::string magic = file.read(std::min<std::int64_t>(file.left(), 8));
  if (!magic.starts_with(kMagic) || magic.size() < 8)
    file.fail_at(0, "expected a .npy file, which begins with \\x93NUMPY and a version");
  const int major = static_cast<unsigned char>(magic[6]);
  const int minor = static_cast<unsigned char>(magic[7]);
  if (major < 1 || major > 3 || minor != 0)
    file.fail_at(6, fmt::format("expected version 1.0, 2.0 or 3.0, found {}.{}", major, minor));
  const std::int64_t length_bytes = major == 1 ? 2 : 4;
  if (file.left() < length_bytes)
    file.fail(fmt::format("expected a header length of {} bytes", length_bytes));
  std::uint32_t length = 0;
  file.read(&length, length_bytes);
  const std::int64_t most = std::min(kLongestHeader, file.left());
  if (length > most) {
    file.fail(fmt::format("expected a header of at most {} bytes, found {} declared at byte 8",
                          most, length));
  }
  const std::int64_t begin = file.position();
  return parse_npy_header(file.path(), file.read(length), begin);
}

template <class Word>
void reverse_bytes(Array& array) {
  Word* words = array.as<Word>();
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    Word turned = 0;
    for (std::size_t byte = 0; byte < sizeof(Word); ++byte)
      turned = static_cast<Word>(turned << 8 | (words[i] >> 8 * byte & 255));
    words[i] = turned;
  }
}

/// From the first axis fastest to the last axis fastest.
template <class Word>
Array to_c_order(const Array& from) {
  Array to(from.type, from.shape);
  const std::size_t axes = from.shape.size();
  std::vector<std::int64_t> stride(axes, 1), index(axes, 0);
  for (std::size_t axis = 1; axis < axes; ++axis)
    stride[axis] = stride[axis - 1] * from.shape[axis - 1];
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < from.elements(); ++i) {
    to.as<Word>()[i] = from.as<Word>()[source];
    for (std::size_t axis = axes; axis-- > 0;) {
      source += stride[axis];
      if (++index[axis] < from.shape[axis]) break;
      source -= stride[axis] * from.shape[axis];
      index[axis] = 0;
    }
  }
  return to;
}

template <class Word>
Array in_host_order(Array array, const NpyHeader& header) {
  if (header.big_endian) reverse_bytes<Word>(array);
  return header.fortran_order && array.shape.size() > 1 ? to_c_order<Word>(array)
                                                        : std::move(array);
}

}  // namespace

Array read_npy(const std::string& path) {
  InputFile file(path);
  return read_npy(file);
}

Array read_npy(InputFile& file) {
  const NpyHeader header = read_header(file);
  const std::optional<std::int64_t> elements = element_count_of(header.shape);
  std::int64_t bytes = 0;
  const bool overflow =
      !elements || __builtin_mul_overflow(*elements, std::int64_t{bytes_of(header.type)}, &bytes);
  if (overflow || bytes != file.left()) {
    file.fail(fmt::format("expected {} for {} of shape {}, found {}",
                          overflow ? "more than 2^63 bytes" : counted(bytes, "byte"),
                          to_string(header.type), shape_text(header.shape), file.left()));
  }
  const std::int64_t begin = file.position();
  Array array(header.type, header.shape);
  file.read(array.data.data(), bytes);
  if (const auto at = no_truth_value(header, {reinterpret_cast<const char*>(array.data.data()),
                                              static_cast<std::size_t>(bytes)}))
    file.fail_at(begin + *at, "expected a bool, 0 or 1");
  if (!header.big_endian && !header.fortran_order) return array;
  switch (bytes_of(header.type)) {
    case 1:
      return in_host_order<std::uint8_t>(std::move(array), header);
    case 2:
      return in_host_order<std::uint16_t>(std::move(array), header);
    case 4:
      return in_host_order<std::uint32_t>(std::move(array), header);
    default:
      return in_host_order<std::uint64_t>(std::move(array), header);
  }
}

PendingFile pending_npy(const std::string& path, ArrayType type, const ArrayShape& shape,
                        const void* data) {
  const std::int64_t bytes = element_count_of(shape).value() * bytes_of(type);
  return {path,
          {format_npy_header(type, shape),
           {static_cast<const char*>(data), static_cast<std::size_t>(bytes)}}};
}

void write_npy(const std::string& path, ArrayType type, const ArrayShape& shape, const void* data) {
  pending_npy(path, type, shape, data).commit();
}

void write_npy(const std::string& path, const Array& array) {
  write_npy(path, array.type, array.shape, array.data.data());
}

}  // namespace numemu
