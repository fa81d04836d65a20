// Finds block formats by name or description; the rows come from blocks.def.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/blocks/block_format.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

#include "formats/blocks/block_description.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/interned.hpp"
#include "formats/suggest.hpp"

namespace numemu {
namespace {

// In the order of the enumerators.
constexpr std::string_view kSpans[] = {"block", "tensor", "channel", "row"};
constexpr std::string_view kAffines[] = {"sym", "zp", "min"};

const std::vector<BlockFormat>& rows() {
  static const std::vector<BlockFormat> table = {
#define NUMEMU_BLOCK(name, element, exponent, scale, size, tensor_scale, rule, source, doc) \
  BlockFormat{#name,        &find_format(#element),                                         \
              exponent,     &find_format(#scale),                                           \
              Span::block,  size,                                                           \
              tensor_scale, Affine::sym,                                                    \
              #rule,        source,                                                         \
              doc},
#include "formats/blocks/blocks.def"
#undef NUMEMU_BLOCK
  };
  return table;
}

bool same_format(const BlockFormat& a, const BlockFormat& b) {
  return *a.element == *b.element && a.element_exponent == b.element_exponent &&
         *a.scale == *b.scale && a.span == b.span && a.size == b.size &&
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
  const double share = span == Span::block ? scale_bits() / static_cast<double>(size) : 0;
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

const BlockFormat& scaled_format(const Format& element, Span span, std::int64_t size) {
  const std::string shared = span == Span::block ? std::to_string(size) : to_string(span);
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
