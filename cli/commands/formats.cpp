// numemu formats: every scalar format, or one with its parameters, limits and all values.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "formats/codec.hpp"
#include "formats/format.hpp"

namespace numemu::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostListed = 8;  // bits: 256 values are a page, 65,536 are not

std::string plain(double value) { return fmt::format("{:.9g}", value); }

Json format_json(const Format& format) {
  const bool floating = format.kind == Kind::floating;
  Json json = {{"name", format.name},
               {"kind", floating ? "float" : "integer"},
               {"signed", format.is_signed},
               {"bits", format.bits}};
  if (floating)
    json.update({{"exponent_bits", format.exponent_bits},
                 {"mantissa_bits", format.mantissa_bits},
                 {"bias", format.bias}});
  json.update({{"infinity", format.has_infinity()},
               {"nan", format.has_nan()},
               {"negative_zero", format.has_negative_zero()},
               {"largest", largest_value(format)},
               {"smallest_normal", smallest_normal(format)},
               {"smallest", smallest_value(format)},
               {"aliases", aliases_of(format)},
               {"source", format.source}});
  return json;
}

std::string value_text(const Value& value) {
  if (value.kind == Class::nan) return "NaN";
  if (value.kind == Class::infinite) return value.negative ? "-Inf" : "Inf";
  if (value.kind == Class::zero) return value.negative ? "-0" : "0";
  return plain(to_double(value));
}

int print_one(const Format& format, bool as_json) {
  Json json = format_json(format);
  const bool listed = format.bits <= kMostListed;
  if (as_json) {
    if (listed) {
      Json values = Json::array();
      for (std::uint64_t code = 0; code <= format.code_mask(); ++code)
        values.push_back(value_text(decode(format, code)));
      json["values"] = values;
    }
    fmt::print("{}\n", json.dump(2));
    return kFine;
  }
  for (const auto& item : json.items()) {
    fmt::print("{:<16}{}\n", item.key(),
               item.value().is_string() ? item.value().get<std::string>() : item.value().dump());
  }
  if (!listed) return kFine;
  fmt::print("\nvalues, code in hexadecimal\n");
  constexpr std::uint64_t kColumns = 8;
  const std::uint64_t rows = (format.code_mask() + kColumns) / kColumns;
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t code = row; code <= format.code_mask(); code += rows) {
      fmt::print("{:02x} {:<13}", code, value_text(decode(format, code)));
    }
    fmt::print("\n");
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
                    format->has_infinity() ? "yes" : "no", format->has_nan() ? "yes" : "no",
                    plain(largest_value(*format)), plain(smallest_normal(*format)),
                    plain(smallest_value(*format)),
                    fmt::format("{}", fmt::join(aliases_of(*format), " "))});
  }
  if (as_json) {
    fmt::print("{}\n", list.dump(2));
  } else {
    fmt::print("{}", text_table({"format", "bits", "exp", "man", "bias", "inf", "nan", "largest",
                                 "smallest normal", "smallest", "aliases"},
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
