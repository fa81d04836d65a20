// Finds block formats by name or description; the rows come from blocks.def.
#include "formats/blocks/block_format.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/interned.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

constexpr int kWidestElement = 16;      // bits: codes are bytes or half-words
constexpr int kWidestExponent = 8;      // bits, as in float32
constexpr int kLargestBias = 255;       // of elements and scales: float32 numbers stay near
constexpr int kMxInteger = 8;           // bits of the one integer element of OCP MX
constexpr int kMxIntegerExponent = -6;  // OCP MX 1.0, section 5.3.4

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// HEAD(ARGUMENT, ...): the parts, commas inside inner brackets left alone.
struct Call {
  std::string_view text, head;
  std::vector<std::string_view> arguments;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("block format '" + std::string(text) + "': " + what);
  }
  void expect_arguments(std::size_t least, std::size_t most, const char* shape) const {
    if (arguments.size() < least || arguments.size() > most)
      fail("expected " + std::string(shape) + ", not " + std::to_string(arguments.size()) +
           " parts");
  }
};

Call parse_call(std::string_view text, std::size_t bracket) {
  Call call{text, trimmed(text.substr(0, bracket)), {}};
  if (!text.ends_with(')')) call.fail("expected a ')' at the end");
  const std::string_view inside = text.substr(bracket + 1, text.size() - bracket - 2);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '(') ++depth;
    if (inside[i] == ')' && --depth < 0) call.fail("unexpected ')' before the end");
    if (inside[i] != ',' || depth > 0) continue;
    call.arguments.push_back(trimmed(inside.substr(begin, i - begin)));
    begin = i + 1;
  }
  call.arguments.push_back(trimmed(inside.substr(begin)));
  return call;
}

std::int64_t parse_number(const Call& call, const char* part, std::string_view digits,
                          std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, value);
  if (at != end || digits.empty() || error == std::errc::invalid_argument)
    call.fail(std::string(part) + " '" + std::string(digits) + "' is not a whole number");
  if (error != std::errc{} || value < least || value > most)
    call.fail(std::string(part) + " = " + std::string(digits) + " is outside " +
              std::to_string(least) + ".." + std::to_string(most));
  return value;
}

const Format& parse_format(const Call& call, std::string_view name) {
  try {
    return find_format(name);
  } catch (const Error& error) {
    call.fail(error.what());
  }
}

bool moderate(const Format& f) {
  return f.kind == Kind::floating && f.exponent_bits <= kWidestExponent &&
         std::abs(f.bias) <= kLargestBias;
}

bool usable_float(const Format& f) {
  return moderate(f) && f.bits <= kWidestElement && f.has_zero();
}

/// Entries that are float32 numbers, so that products with scales are exact; some above zero.
bool usable_codebook(const Format& f) {
  if (f.kind != Kind::codebook) return false;
  const std::vector<double> entries = finite_values(f);
  return entries.back() > 0 && std::ranges::all_of(entries, [](double x) {
           return static_cast<double>(static_cast<float>(x)) == x &&
                  (x == 0 || std::abs(x) >= std::numeric_limits<float>::min());
         });
}

bool usable_element(const Format& f) { return usable_float(f) || usable_codebook(f); }

constexpr std::string_view kTensorScale = "tensor-scale";

std::string size_text(const BlockFormat& f) {
  return (f.span == Span::tile ? std::to_string(f.rows) + "x" : "") + std::to_string(f.size);
}

/// SIZE or RxC.
void parse_size(const Call& call, std::string_view text, BlockFormat& f) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) {
    f.size = parse_number(call, "size", text, 1, kLargestBlock);
    return;
  }
  f.span = Span::tile;
  f.rows = parse_number(call, "rows", text.substr(0, cross), 1, kLargestBlock);
  f.size = parse_number(call, "columns", text.substr(cross + 1), 1, kLargestBlock / f.rows);
}

BlockFormat parse_mx(const Call& call) {
  call.expect_arguments(2, 3, "mx(ELEM,SIZE[,tensor-scale])");
  BlockFormat f;
  f.element = &parse_format(call, call.arguments[0]);
  const bool is_int8 =
      f.element->kind == Kind::integer && f.element->is_signed && f.element->bits == kMxInteger;
  if (!is_int8 && !usable_element(*f.element))
    call.fail(
        "expected a floating element with a zero, at most 16 bits, 8 exponent bits and a bias "
        "within 255, a codebook of float32 numbers, or int8 "
        "(bfp(K,SIZE) has other integers), not " +
        f.element->name);
  f.element_exponent = is_int8 ? kMxIntegerExponent : 0;
  f.scale = &find_format("float8_e8m0fnu");
  parse_size(call, call.arguments[1], f);
  f.tensor_scale = call.arguments.size() == 3;
  if (f.tensor_scale && call.arguments[2] != kTensorScale)
    call.fail("expected tensor-scale, not '" + std::string(call.arguments[2]) + "'");
  f.default_rule = "floor";
  f.name =
      "mx(" + f.element->name + "," + size_text(f) + (f.tensor_scale ? ",tensor-scale" : "") + ")";
  return f;
}

BlockFormat parse_bfp(const Call& call) {
  call.expect_arguments(2, 2, "bfp(K,SIZE)");
  BlockFormat f;
  const std::int64_t k = parse_number(call, "width K", call.arguments[0], 2, 8);
  f.element = &find_format("int" + std::to_string(k));
  f.scale = &find_format("float8_e8m0fnu");
  parse_size(call, call.arguments[1], f);
  f.default_rule = "floor";
  f.name = "bfp(" + std::to_string(k) + "," + size_text(f) + ")";
  return f;
}

// Name, default rule and checks of a group whose parts are known.
BlockFormat finish_group(BlockFormat f, const Call& call) {
  const bool integer = f.element->kind == Kind::integer;
  if (!integer && !usable_element(*f.element))
    call.fail(
        "expected an element intK, uintK, a floating format with a zero, at most 16 bits "
        "and 8 exponent bits, or a codebook of float32 numbers, not " +
        f.element->name);
  if (!integer && f.affine != Affine::sym)
    call.fail(to_string(f.affine) + " needs integer elements, not " + f.element->name);
  const bool usable_scale = moderate(*f.scale) && f.scale->container_shift == 0 &&
                            (f.scale->bits <= kWidestElement || f.scale->bits == 32);
  if (!usable_scale)
    call.fail(
        "expected a scale of float32 or a floating format of at most 16 bits and 8 exponent "
        "bits, not " +
        f.scale->name);
  if (f.tensor_scale && (f.affine != Affine::sym || f.scale->bits == 32 || f.span == Span::tensor))
    call.fail("a tensor scale needs sym, other scales than float32, and more than one of them");
  f.default_rule = f.power_of_two_scale() ? "ceil" : "absmax";
  f.name = "group(" + f.element->name + "," + (f.size > 0 ? size_text(f) : to_string(f.span)) +
           "," + f.scale->name + (f.affine == Affine::sym ? "" : "," + to_string(f.affine)) +
           (f.tensor_scale ? ",tensor-scale" : "") + ")";
  return f;
}

BlockFormat parse_group(const Call& call) {
  call.expect_arguments(3, 5,
                        "group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min][,tensor-scale])");
  BlockFormat f;
  f.element = &parse_format(call, call.arguments[0]);
  for (const Span span : {Span::tensor, Span::channel, Span::row})
    if (call.arguments[1] == to_string(span)) f.span = span;
  if (f.span == Span::block) {
    const bool digits =
        call.arguments[1].find_first_not_of("-0123456789x") == std::string_view::npos;
    if (!digits)
      call.fail("expected a size, RxC, tensor, channel or row, not '" +
                std::string(call.arguments[1]) + "'");
    parse_size(call, call.arguments[1], f);
  }
  f.scale = &parse_format(call, call.arguments[2]);
  f.tensor_scale = call.arguments.size() > 3 && call.arguments.back() == kTensorScale;
  if (call.arguments.size() == 5 && !f.tensor_scale)
    call.fail("expected tensor-scale, not '" + std::string(call.arguments[4]) + "'");
  if (call.arguments.size() - (f.tensor_scale ? 1 : 0) == 4) {
    const Affine kinds[] = {Affine::sym, Affine::zp, Affine::min};
    const auto named = std::find_if(std::begin(kinds), std::end(kinds), [&](Affine affine) {
      return call.arguments[3] == to_string(affine);
    });
    if (named == std::end(kinds))
      call.fail("expected sym, zp, min or tensor-scale, not '" + std::string(call.arguments[3]) +
                "'");
    f.affine = *named;
  }
  return finish_group(std::move(f), call);
}

/// NVFP4 with blocks of another size.
BlockFormat parse_nvfp4(const Call& call) {
  call.expect_arguments(1, 1, "nvfp4(SIZE)");
  BlockFormat f;
  f.element = &find_format("float4_e2m1fn");
  f.scale = &find_format("float8_e4m3fn");
  f.tensor_scale = true;
  parse_size(call, call.arguments[0], f);
  return finish_group(std::move(f), call);
}

/// What a description looks like, for messages: "mx(ELEM,SIZE)", ...
const std::vector<std::string>& block_description_shapes() {
  static const std::vector<std::string> shapes = {"mx(ELEM,SIZE)", "bfp(K,SIZE)",
                                                  "group(ELEM,SIZE,SCALE)", "nvfp4(SIZE)"};
  return shapes;
}

/// The record that HEAD(ARGUMENT, ...) describes, its name the canonical spelling; empty if `text`
/// has no bracket. Throws Error naming the offending part. Grammar: find_block_format().
std::optional<BlockFormat> parse_block_description(std::string_view text) {
  const std::size_t bracket = text.find('(');
  if (bracket == std::string_view::npos) return {};
  const Call call = parse_call(text, bracket);
  if (call.head == "mx") return parse_mx(call);
  if (call.head == "bfp") return parse_bfp(call);
  if (call.head == "group") return parse_group(call);
  if (call.head == "nvfp4") return parse_nvfp4(call);
  const std::string nearest = nearest_name(call.head, {"mx", "bfp", "group", "nvfp4"});
  const std::vector<std::string>& shapes = block_description_shapes();
  const auto shape = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const std::string& s) { return s.starts_with(nearest); });
  call.fail("unknown '" + std::string(call.head) + "(...)'; did you mean '" + *shape + "'?");
}

// In the order of the enumerators.
constexpr std::string_view kSpans[] = {"block", "tensor", "channel", "row", "tile"};
constexpr std::string_view kAffines[] = {"sym", "zp", "min"};

const std::vector<BlockFormat>& rows() {
  static const std::vector<BlockFormat> table = {
#define NUMEMU_BLOCK(name, element, exponent, scale, size, tensor_scale, rule, source, doc) \
  BlockFormat{#name,       &find_format(#element),                                          \
              exponent,    &find_format(#scale),                                            \
              Span::block, size,                                                            \
              1,           tensor_scale,                                                    \
              Affine::sym, #rule,                                                           \
              source,      doc},
#include "formats/blocks/blocks.def"
#undef NUMEMU_BLOCK
  };
  return table;
}

bool same_format(const BlockFormat& a, const BlockFormat& b) {
  return *a.element == *b.element && a.element_exponent == b.element_exponent &&
         *a.scale == *b.scale && a.span == b.span && a.size == b.size && a.rows == b.rows &&
         a.tensor_scale == b.tensor_scale && a.affine == b.affine &&
         a.default_rule == b.default_rule;
}

// The first row that is the same, else a record of its own.
const BlockFormat& keep(BlockFormat described) {
  for (const BlockFormat& row : rows())
    if (same_format(row, described)) return row;
  described.source = "described";
  described.doc = "Described by its name";
  return Interned::find<BlockFormat>(
      described.name, [&] { return std::make_unique<const BlockFormat>(described); });
}

template <std::size_t N>
std::size_t find(const std::string_view (&names)[N], std::string_view name) {
  return static_cast<std::size_t>(std::find(std::begin(names), std::end(names), name) -
                                  std::begin(names));
}

}  // namespace

bool BlockFormat::power_of_two_scale() const {
  return scale->field_zero == FieldZero::scale && scale->mantissa_bits == 0 &&
         affine == Affine::sym;
}

int BlockFormat::scale_bits() const {
  return scale->bits + (affine == Affine::zp ? element->bits : affine == Affine::min ? 32 : 0);
}

double BlockFormat::bits_per_element() const {
  const double share = size > 0 ? scale_bits() / static_cast<double>(size * rows) : 0;
  return element->bits + share;
}

Value largest_element(const BlockFormat& f) {
  Value largest = decode(*f.element, f.element->largest_code());
  largest.exponent += f.element_exponent;
  return largest;
}

std::string to_string(Span span) { return std::string(kSpans[static_cast<std::size_t>(span)]); }

std::string to_string(Affine affine) {
  return std::string(kAffines[static_cast<std::size_t>(affine)]);
}

Span parse_span(std::string_view text) {
  return static_cast<Span>(index_named("granularity", text, kSpans));
}

const BlockFormat& find_block_format(std::string_view name) {
  const std::size_t first = std::min(name.find_first_not_of(' '), name.size());
  const std::string_view text = name.substr(first, name.find_last_not_of(' ') - first + 1);
  for (const BlockFormat& row : rows())
    if (row.name == text) return row;
  if (auto described = parse_block_description(text)) return keep(*std::move(described));
  std::vector<std::string> known;
  for (const BlockFormat& row : rows()) known.push_back(row.name);
  for (const std::string& shape : block_description_shapes()) known.push_back(shape);
  throw Error(unknown_name("block format", text, known));
}

const BlockFormat& scaled_format(const Format& element, Span span, std::int64_t size,
                                 std::int64_t rows) {
  const std::string tile = span == Span::tile ? std::to_string(rows) + "x" : "";
  const bool sized = span == Span::block || span == Span::tile;
  const std::string shared = sized ? tile + std::to_string(size) : to_string(span);
  return find_block_format("group(" + element.name + "," + shared + ",float32)");
}

const std::vector<const BlockFormat*>& named_block_formats() {
  static const std::vector<const BlockFormat*> list = [] {
    std::vector<const BlockFormat*> pointers;
    for (const BlockFormat& row : rows()) pointers.push_back(&row);
    return pointers;
  }();
  return list;
}

std::string block_format_meant(std::string_view text) {
  // The names alone: the rows would look up their scalar formats.
  constexpr std::string_view kNames[] = {
#define NUMEMU_BLOCK(name, element, exponent, scale, size, tensor_scale, rule, source, doc) #name,
#include "formats/blocks/blocks.def"
#undef NUMEMU_BLOCK
  };
  for (const std::string_view name : kNames)
    if (same_name(name, text)) return std::string(name);
  for (const std::string& shape : block_description_shapes()) {
    const std::string_view head = std::string_view(shape).substr(0, shape.find('(') + 1);
    if (text.starts_with(head)) return std::string(text);
  }
  return "";
}

}  // namespace numemu
