// numemu formats: every scalar format, or one with all its parameters, limits and values.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostPrinted = 8;  // bits: 256 values are a page
constexpr int kMostListed = 16;  // 65,536 values are for --json only

std::string plain(double value) { return fmt::format("{:.9g}", value); }

std::string_view to_text(Specials specials) {
  switch (specials) {
    case Specials::ieee:
      return "ieee";
    case Specials::nan1:
      return "nan1";
    case Specials::fnuz:
      return "fnuz";
    case Specials::finite:
      return "finite";
    case Specials::top:
      return "top";
    case Specials::p3109_extended:
      return "p3109_extended";
    case Specials::p3109_finite:
      return "p3109_finite";
  }
  return "";
}

std::string_view to_text(FieldZero field_zero) {
  switch (field_zero) {
    case FieldZero::subnormal:
      return "subnormal";
    case FieldZero::normal:
      return "normal";
    case FieldZero::scale:
      return "scale";
    case FieldZero::flush:
      return "flush";
  }
  return "";
}

/// null where the limit is no double (e15m2).
Json limit(double (*of)(const Format&), const Format& format) {
  try {
    return of(format);
  } catch (const Error&) {
    return nullptr;
  }
}

Json format_json(const Format& format) {
  const bool floating = format.kind == Kind::floating;
  Json json = {{"name", format.name},
               {"doc", format.doc},
               {"kind", floating ? "float" : "integer"},
               {"signed", format.is_signed},
               {"bits", format.bits}};
  if (floating) {
    json.update({{"exponent_bits", format.exponent_bits},
                 {"mantissa_bits", format.mantissa_bits},
                 {"bias", format.bias},
                 {"specials", to_text(format.specials)},
                 {"field_zero", to_text(format.field_zero)},
                 {"container_shift", format.container_shift}});
  }
  json.update({{"infinity", format.has_infinity()},
               {"nan", format.has_nan()},
               {"negative_zero", format.has_negative_zero()},
               {"largest", limit(largest_value, format)},
               {"smallest_normal", limit(smallest_normal, format)},
               {"smallest", limit(smallest_value, format)},
               {"aliases", aliases_of(format)},
               {"source", format.source}});
  return json;
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
  if (property.is_array())
    return fmt::format("{}", fmt::join(property.get<std::vector<std::string>>(), " "));
  return property.dump();
}

void print_values(const Format& format) {
  fmt::print("\nvalues, code in hexadecimal\n");
  constexpr std::uint64_t kColumns = 8;
  const std::uint64_t rows = (format.code_mask() + kColumns) / kColumns;
  std::vector<std::string> texts;
  std::size_t width = 0;
  for (std::uint64_t code = 0; code <= format.code_mask(); ++code) {
    texts.push_back(value_text(decode(format, code), plain));
    width = std::max(width, texts.back().size());
  }
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t code = row; code <= format.code_mask(); code += rows)
      fmt::print("{:02x} {:<{}}  ", code, texts[code], width);
    fmt::print("\n");
  }
}

int print_one(const Format& format, bool as_json) {
  Json json = format_json(format);
  if (as_json) {
    if (format.bits <= kMostListed) {
      Json values = Json::array();
      for (std::uint64_t code = 0; code <= format.code_mask(); ++code)
        values.push_back(value_text(decode(format, code), shortest));
      json["values"] = values;
    }
    fmt::print("{}\n", json.dump(2));
    return kFine;
  }
  for (const auto& item : json.items())
    fmt::print("{:<16}{}\n", item.key(), property_text(item.value()));
  if (format.bits <= kMostPrinted) {
    print_values(format);
  } else if (format.bits <= kMostListed) {
    fmt::print("\n{} values: numemu formats {} --json lists them\n", format.code_mask() + 1,
               format.name);
  } else {
    fmt::print("\n2^{} values: they are listed up to {} bits\n", format.bits, kMostListed);
  }
  return kFine;
}

int print_all(bool as_json) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const Format* format : named_formats()) {
    const Json json = format_json(*format);
    list.push_back(json);
    const bool floating = format->kind == Kind::floating;
    rows.push_back({format->name, fmt::format("{}", format->bits),
                    floating ? fmt::format("{}", format->exponent_bits) : "",
                    floating ? fmt::format("{}", format->mantissa_bits) : "",
                    floating ? fmt::format("{}", format->bias) : "",
                    std::string(floating ? to_text(format->specials) : ""),
                    std::string(floating ? to_text(format->field_zero) : ""),
                    format->has_infinity() ? "yes" : "no", format->has_nan() ? "yes" : "no",
                    plain(largest_value(*format)), plain(smallest_normal(*format)),
                    plain(smallest_value(*format)),
                    fmt::format("{}", fmt::join(aliases_of(*format), " "))});
  }
  if (as_json) {
    fmt::print("{}\n", list.dump(2));
  } else {
    fmt::print("{}", text_table({"format", "bits", "exp", "man", "bias", "specials", "field 0",
                                 "inf", "nan", "largest", "smallest normal", "smallest", "aliases"},
                                rows));
  }
  return kFine;
}

}  // namespace

void add_formats(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("formats", "List the number formats, or one with every value");
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command
      ->add_option("name", *name, "A name, alias or descriptor (float8_e4m3fn, e3m2, e4m3+finite)")
      ->type_name("NAME");
  command->add_flag("--json", *json, "Print JSON");
  command->callback([&action, name, json] {
    action = [name, json] {
      return name->empty() ? print_all(*json) : print_one(find_format(*name), *json);
    };
  });
}

}  // namespace numemu::cli
