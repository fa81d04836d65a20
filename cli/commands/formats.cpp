// numemu formats: every scalar and block format, or one with all its parameters, limits and values.
#include "api/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/completion.hpp"
#include "cli/talk.hpp"
#include "formats/codebooks/named_codebooks.hpp"
#include "formats/codec.hpp"
#include "formats/conformance.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {
namespace {

struct FormatsOptions {
  std::string name;
  bool json = false, conformance = false;
};

constexpr int kMostPrinted = 8;  // bits: 256 values are a page
constexpr int kMostListed = 16;  // 65,536 values are for --json only

std::string plain(double value) { return fmt::format("{:.9g}", value); }

/// A table of the named block formats.
std::string block_table() {
  std::vector<std::vector<std::string>> rows;
  for (const BlockFormat* f : named_block_formats()) {
    rows.push_back({f->name, f->element->name, f->scale->name, fmt::format("{}", f->size),
                    f->tensor_scale ? "float32" : "", fmt::format("{:g}", f->bits_per_element()),
                    f->default_rule, f->source});
  }
  return api::text_table(
      {"block format", "element", "scale", "block", "tensor scale", "bits", "rule", "source"},
      rows);
}

/// `number` writes a double; a value beyond the doubles is written as integer * 2^exponent.
std::string value_text(const Value& value, std::string (*number)(double)) {
  if (value.kind == Class::nan) return "NaN";
  if (value.kind == Class::infinite) return value.negative ? "-Inf" : "Inf";
  if (value.kind == Class::zero) return value.negative ? "-0" : "0";
  try {
    return number(to_double(value));
  } catch (const Error&) {
    return fmt::format("{}{}*2^{}", value.negative ? "-" : "", value.significand, value.exponent);
  }
}

std::string shortest(double value) { return fmt::format("{}", value); }

std::string property_text(const Json& property) {
  if (property.empty()) return "-";  // null, or no aliases
  if (property.is_string()) return property.get<std::string>();
  if (property.is_array()) return joined(property.get<std::vector<std::string>>(), " ");
  return property.dump();
}

void print_values(const Format& format) {
  fmt::print("\nvalues, code in hexadecimal\n");
  constexpr std::uint64_t kColumns = 8;
  const std::uint64_t rows = (format.last_code() + kColumns) / kColumns;
  std::vector<std::string> texts;
  std::size_t width = 0;
  for (std::uint64_t code = 0; code <= format.last_code(); ++code) {
    texts.push_back(value_text(decode(format, code), plain));
    width = std::max(width, texts.back().size());
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t code = row; code <= format.last_code(); code += rows)
      fmt::print("{:02x} {:<{}}  ", code, texts[code], width);
    fmt::print("\n");
  }
}

void print_properties(const Json& json) {
  for (const auto& item : json.items())
    fmt::print("{:<18}{}\n", item.key(), harmless(property_text(item.value())));
}

int print_block(const BlockFormat& format, bool as_json) {
  const Json json = api::block_json(format);
  if (as_json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    print_properties(json);
  }
  return kFine;
}

int print_one(const Format& format, bool as_json) {
  Json json = api::format_json(format);
  if (as_json) {
    if (format.bits <= kMostListed) {
      Json values = Json::array();
      for (std::uint64_t code = 0; code <= format.last_code(); ++code)
        values.push_back(value_text(decode(format, code), shortest));
      json["values"] = values;
    }
    fmt::print("{}\n", json.dump(2));
    return kFine;
  }
  print_properties(json);
  if (format.bits <= kMostPrinted) {
    print_values(format);
  } else if (format.bits <= kMostListed) {
    fmt::print("\n{} values: numemu formats {} --json lists them\n", format.last_code() + 1,
               format.name);
  } else {
    fmt::print("\n2^{} values: only formats of up to {} bits are listed\n", format.bits,
               kMostListed);
  }
  return kFine;
}

std::string codebook_table() {
  std::vector<std::vector<std::string>> rows;
  for (const NamedCodebook& book : named_codebooks())
    rows.push_back({std::string(book.shape), std::string(book.doc), std::string(book.source)});
  rows.push_back({"codebook(FILE.npy)", "float64 entries of a file", "-"});
  return api::text_table({"codebook", "what it is", "source"}, rows);
}

int print_all(bool as_json) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Format* format : named_formats()) {
    const Json json = api::format_json(*format);
    list.push_back(json);
    const bool floating = format->kind == Kind::floating;
    rows.push_back(
        {format->name, fmt::format("{}", format->bits),
         floating ? fmt::format("{}", format->exponent_bits) : "",
         floating ? fmt::format("{}", format->mantissa_bits) : "",
         floating ? fmt::format("{}", format->bias) : "", floating ? json["specials"].text() : "",
         floating ? json["field_zero"].text() : "", format->has_infinity() ? "yes" : "no",
         format->has_nan() ? "yes" : "no", plain(largest_value(*format)),
         format->kind == Kind::integer ? "-" : plain(smallest_normal(*format)),
         plain(smallest_value(*format)), joined(aliases_of(*format), " ")});
  }
  for (const BlockFormat* format : named_block_formats()) list.push_back(api::block_json(*format));
  if (as_json) {
    fmt::print("{}\n", list.dump(2));
  } else {
    fmt::print(
        "{}", api::text_table({"format", "bits", "exp", "man", "bias", "specials", "field 0", "inf",
                               "nan", "largest", "smallest normal", "smallest", "aliases"},
                              rows));
    fmt::print(
        "\n{}\nothers by name: mx(ELEM,SIZE)  nvfp4(SIZE)  bfp(K,SIZE)  "
        "group(ELEM,SIZE|tensor|channel|row,SCALE[,sym|zp|min][,tensor-scale])\n\n{}",
        block_table(), codebook_table());
  }
  return kFine;
}

int print_conformance() {
  fmt::print("{}", conformance_page());
  return kFine;
}

int run_formats(const FormatsOptions& options) {
  if (options.conformance) return print_conformance();
  if (options.name.empty()) return print_all(options.json);
  if (api::is_block_name(options.name))
    return print_block(find_block_format(options.name), options.json);
  return print_one(api::find_scalar_format(options.name), options.json);
}

}  // namespace

void add_formats(Program& program) {
  auto [command, options] = program.command<FormatsOptions>("formats", run_formats);
  command
      .option("name NAME", options.name,
              "A name, alias, descriptor or codebook (float8_e4m3fn, e3m2, e4m3+finite, "
              "codebook(x.npy)), or a block format (mxfp4, group(int4,128,float16))")
      .suggest(format_words);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--conformance", options.conformance,
               "Print the flags that match other libraries (docs/conformance.md)");
}

}  // namespace numemu::cli
