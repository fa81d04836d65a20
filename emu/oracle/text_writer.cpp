#include "emu/oracle/text_writer.hpp"

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

}  // namespace numemu::oracle
