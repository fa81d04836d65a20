// Formats by name, alias, descriptor or codebook.
#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "formats/blocks/block_format.hpp"
#include "formats/codebooks/codebook.hpp"
#include "formats/codebooks/named_codebooks.hpp"
#include "formats/error.hpp"
#include "formats/format_table.hpp"
#include "formats/interned.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

// A number and its text, for errors. Beyond int the value is the extreme one, which every range
// check refuses.
struct Number {
  int value;
  std::string_view text;
};

// A cursor over the text; each take_ consumes a match or leaves the cursor where it is.
struct Cursor {
  std::string_view text;
  std::string_view rest = text;

  bool take(std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  }
  std::optional<Number> take_number() {
    const bool minus = rest.starts_with('-');
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", minus), rest.size());
    if (end == static_cast<std::size_t>(minus)) return {};
    using Limits = std::numeric_limits<int>;
    Number number{minus ? Limits::min() : Limits::max(), rest.substr(0, end)};
    std::from_chars(rest.data(), rest.data() + end, number.value);  // leaves it where out of range
    rest.remove_prefix(end);
    return number;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error("format '" + std::string(text) + "': " + what);
  }
  void check(const char* part, const Number& number, int low, int high) const {
    if (number.value < low || number.value > high)
      fail(std::string(part) + " = " + std::string(number.text) + " is outside " +
           std::to_string(low) + ".." + std::to_string(high));
  }
};

constexpr int kLargestBias = 32767;

struct Option {
  std::string_view word;
  int group;  // at most one word of a group may be given
  void (*apply)(Format&);
};
constexpr Option kOptions[] = {
    {"ieee", 0, [](Format& f) { f.specials = Specials::ieee; }},
    {"nan1", 0, [](Format& f) { f.specials = Specials::nan1; }},
    {"fnuz", 0, [](Format& f) { f.specials = Specials::fnuz; }},
    {"finite", 0, [](Format& f) { f.specials = Specials::finite; }},
    {"nosub", 1, [](Format& f) { f.field_zero = FieldZero::normal; }},
    {"ftz", 1, [](Format& f) { f.field_zero = FieldZero::flush; }},
    {"unsigned", 2, [](Format& f) { f.is_signed = false; }},
};

std::string exponent_mantissa(int exponent_bits, int mantissa_bits) {
  return "e" + std::to_string(exponent_bits) + "m" + std::to_string(mantissa_bits);
}

// The row that has this text as an alias: e2m1, e2m3 and e3m2 are OCP elements, not IEEE-like.
const Format* row_of_alias(const std::string& alias) {
  for (const Format* row : named_formats()) {
    const std::vector<std::string> aliases = aliases_of(*row);
    if (std::find(aliases.begin(), aliases.end(), alias) != aliases.end()) return row;
  }
  return nullptr;
}

std::string canonical_name(const Format& f, int default_bias,
                           const bool (&given)[std::size(kOptions)]) {
  std::string name = exponent_mantissa(f.exponent_bits, f.mantissa_bits);
  if (f.bias != default_bias) name += "b" + std::to_string(f.bias);
  for (std::size_t i = 1; i < std::size(kOptions); ++i)  // the first one, ieee, is the default
    if (given[i]) name.append("+").append(kOptions[i].word);
  return row_of_alias(name) ? name + "+ieee" : name;  // read back it must be this format
}

void parse_options(Cursor& cursor, Format& f, bool (&given)[std::size(kOptions)]) {
  bool used[3] = {};
  while (!cursor.rest.empty()) {
    const std::string_view word = cursor.rest.substr(1, cursor.rest.find('+', 1) - 1);
    const auto option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                     [&](const Option& o) { return o.word == word; });
    if (option == std::end(kOptions))
      cursor.fail("unknown part '+" + std::string(word) +
                  "', expected +ieee +nan1 +fnuz +finite +nosub +ftz +unsigned");
    if (used[option->group])
      cursor.fail("part '+" + std::string(word) + "' contradicts or repeats an earlier one");
    used[option->group] = true;
    option->apply(f);
    given[option - kOptions] = true;
    cursor.rest.remove_prefix(1 + word.size());
  }
}

std::optional<Format> parse_exponent_mantissa(std::string_view text) {
  Cursor cursor{text};
  if (!cursor.take("e")) return {};
  const auto exponent_bits = cursor.take_number();
  if (!exponent_bits || !cursor.take("m")) return {};
  const auto mantissa_bits = cursor.take_number();
  if (!mantissa_bits) return {};
  const bool has_bias = cursor.take("b");
  const auto bias = has_bias ? cursor.take_number() : std::nullopt;
  if ((has_bias && !bias) || !(cursor.rest.empty() || cursor.rest[0] == '+')) return {};

  cursor.check("exponent bits", *exponent_bits, 1, 15);
  cursor.check("mantissa bits", *mantissa_bits, 0, 23);
  if (bias) cursor.check("bias", *bias, -kLargestBias, kLargestBias);
  Format f;
  f.exponent_bits = exponent_bits->value;
  f.mantissa_bits = mantissa_bits->value;
  f.specials = Specials::ieee;
  const int default_bias = (1 << (f.exponent_bits - 1)) - 1;
  f.bias = bias ? bias->value : default_bias;
  if (cursor.rest.empty() && !bias) {  // e02m1 is what e2m1 is
    if (const Format* row = row_of_alias(exponent_mantissa(f.exponent_bits, f.mantissa_bits)))
      return *row;
  }
  bool given[std::size(kOptions)] = {};
  parse_options(cursor, f, given);
  f.bits = f.exponent_bits + f.mantissa_bits + (f.is_signed ? 1 : 0);
  if (f.specials == Specials::fnuz && !f.is_signed)
    cursor.fail("+fnuz needs a sign; +unsigned formats have no code for -0");
  const std::uint64_t largest = f.largest_code();
  if (largest == 0 || largest > f.code_mask() ||
      (f.field_zero == FieldZero::flush && largest >> f.mantissa_bits == 0))
    cursor.fail("no finite value but zero, use more exponent bits or +finite");
  f.name = canonical_name(f, default_bias, given);
  f.source = "described";
  f.doc = "Described by its name";
  return f;
}

std::optional<Format> parse_p3109(std::string_view text) {
  Cursor cursor{text};
  if (!cursor.take("binary")) return {};
  const auto width = cursor.take_number();
  if (!width || !cursor.take("p")) return {};
  const auto precision = cursor.take_number();
  if (!precision || cursor.rest.size() != 2) return {};
  const bool is_signed = cursor.rest[0] == 's', extended = cursor.rest[1] == 'e';
  if (!(is_signed || cursor.rest[0] == 'u') || !(extended || cursor.rest[1] == 'f')) return {};

  cursor.check("width K", *width, 3, 15);
  const int k = width->value, p = precision->value;
  cursor.check("precision P", *precision, 1, is_signed ? k - 1 : k);
  const int exponent_bits = is_signed ? k - p : k - p + 1;
  return Format{
      .name = "binary" + std::to_string(k) + "p" + std::to_string(p) + std::string(cursor.rest),
      .is_signed = is_signed,
      .bits = k,
      .exponent_bits = exponent_bits,
      .mantissa_bits = p - 1,
      .bias = 1 << (exponent_bits - 1),
      .specials = extended ? Specials::p3109_extended : Specials::p3109_finite,
      .source = "IEEE P3109 interim report 3.x",
      .doc = "Described by its name"};
}

/// Integers that are no rows of the table: operands of 16-bit multiply-adds, codes of 1 bit, and
/// what processors convert numbers to.
std::optional<Format> parse_integer(std::string_view text) {
  Cursor cursor{text};
  const bool is_signed = cursor.take("int");
  if (!is_signed && !cursor.take("uint")) return {};
  const auto width = cursor.take_number();
  if (!width || !cursor.rest.empty()) return {};
  const bool bit = width->value == 1 && !is_signed;
  const bool word = width->value == 32 || width->value == 64;
  if (!bit && !word && (width->value < 9 || width->value > 16)) return {};
  Format f;
  f.name = (is_signed ? "int" : "uint") + std::to_string(width->value);
  f.kind = Kind::integer;
  f.is_signed = is_signed;
  f.bits = width->value;
  f.source = is_signed ? "two's complement" : "unsigned integer";
  f.doc = "Described by its name";
  return f;
}

}  // namespace

std::optional<Format> parse_descriptor(std::string_view text) {
  if (auto described = parse_exponent_mantissa(text)) return described;
  if (auto described = parse_integer(text)) return described;
  return parse_p3109(text);
}
namespace {

// One record per name and source. The source of a codebook is the digest of its entries: a file
// that has changed is another format.
const Format& keep(const Format& format) {
  return Interned::find<Format>(format.name + '\n' + format.source,
                                [&] { return std::make_unique<const Format>(format); });
}

// A described format: the first row with the same encoding, else a record of its own.
const Format& keep_described(const Format& described) {
  for (const Format* const row : named_formats())
    if (*row == described) return *row;
  return keep(described);
}

// FILE of "codebook(FILE)".
std::optional<std::string> codebook_path(std::string_view name) {
  constexpr std::string_view kOpen = "codebook(";
  if (!name.starts_with(kOpen)) return {};
  if (!name.ends_with(')') || name.size() == kOpen.size() + 1)
    throw Error("format '" + std::string(name) + "': expected codebook(FILE.npy)");
  return std::string(name.substr(kOpen.size(), name.size() - kOpen.size() - 1));
}

/// A text that names a codebook, and its format: Lloyd-Max levels are computed once.
struct NamedAs {
  const Format* format;
};

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Says what is wrong with names whose meaning is clear and which no edit distance explains.
void refuse_known_shapes(std::string_view name) {
  const std::string quoted = "'" + std::string(name) + "'";
  if (const std::string block = block_format_meant(name); !block.empty())
    throw Error(quoted + " is a block format: quantize --block " + block);
  for (const std::string_view head : {"int", "uint"}) {
    if (name.starts_with(head) && all_digits(name.substr(head.size())))
      throw Error("unknown format " + quoted + ": expected " + std::string(head) +
                  (head == "int" ? "2" : "1") + " to " + std::string(head) +
                  "16, or another format of `numemu formats`");
  }
  constexpr std::string_view kP3109 = "binary";
  if (name.starts_with(kP3109) && name.size() > kP3109.size() &&
      all_digits(name.substr(kP3109.size(), 1)))
    throw Error("unknown format " + quoted +
                ": expected binary{K}p{P}{s|u}{e|f}, such as binary8p3se: width K, precision P, "
                "signed or unsigned, extended (with infinities) or finite");
}

}  // namespace

const Format& find_format(std::string_view name) {
  if (const Format* const named = named_format(name)) return *named;
  if (auto described = parse_descriptor(name)) return keep_described(*described);
  if (const auto path = codebook_path(name)) return keep(read_codebook_format(*path));
  if (is_named_codebook(name)) {
    return *Interned::find<NamedAs>(std::string(name), [&] {
              return std::make_unique<const NamedAs>(NamedAs{&keep(parse_named_codebook(name))});
            }).format;
  }
  refuse_known_shapes(name);
  std::vector<std::string> known = names_of_formats();
  for (const NamedCodebook& codebook : named_codebooks()) known.emplace_back(codebook.shape);
  throw Error(unknown_name("format", name, known));
}

bool operator==(const Format& a, const Format& b) {
  const auto encoding = [](const Format& f) {
    return std::tie(f.kind, f.bits, f.is_signed, f.exponent_bits, f.mantissa_bits, f.bias,
                    f.specials, f.field_zero, f.container_shift);
  };
  if (encoding(a) != encoding(b)) return false;
  return a.codebook == b.codebook ||
         (a.codebook != nullptr && b.codebook != nullptr && *a.codebook == *b.codebook);
}

}  // namespace numemu
