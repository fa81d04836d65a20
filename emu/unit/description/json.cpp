// The JSON form: read field by field, noting everything that is wrong; written in its canonical
// form, as a template with every key, and as a schema.
#include "emu/unit/description/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <type_traits>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/products.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {
namespace {

constexpr int kVersion = 1;
constexpr const char* kVersionKey = "numemu_unit";
constexpr const char* kProductsKey = "products";
constexpr std::string_view kFractionKey = "alignment.fraction_bits";

/// "accumulator" and "bits"; "" and "core".
std::pair<std::string, std::string> object_and_member(std::string_view key) {
  const std::size_t point = key.find('.');
  if (point == key.npos) return {"", std::string(key)};
  return {std::string(key.substr(0, point)), std::string(key.substr(point + 1))};
}

/// The code of NaN where none is given: the quiet one of D, 0 where there is none.
std::uint64_t usual_nan(const UnitDescription& u) {
  const Format* d = result_format(u);
  return d != nullptr && d->has_nan() ? d->nan_code() : 0;
}

constexpr std::int64_t kLargestNumber = std::int64_t{1} << 30;

std::string text(const JsonReader& value) {
  if (value.is_null()) value.fail("a string");
  return value.text("");
}

void read(const JsonReader& value, std::string& field) { field = text(value); }

void read(const JsonReader& value, const Format*& field) {
  field = nullptr;
  if (value.is_null()) return;
  const std::string name = text(value);
  field = at(value, [&] { return &find_format(name); });
}

void read(const JsonReader& value, int& field) {
  // An absent key never comes here: null is not a number.
  if (value.is_null()) value.fail("an integer");
  field = static_cast<int>(value.integer(0, -kLargestNumber, kLargestNumber));
}

void read(const JsonReader& value, bool& field) {
  if (!value.value().is_boolean()) value.fail("true or false");
  field = value.value().get<bool>();
}

void read(const JsonReader& value, std::optional<int>& field) {
  field.reset();
  if (!value.is_null()) read(value, field.emplace());
}

void read(const JsonReader& value, Rounding& field) {
  const std::string name = text(value);
  field = at(value, [&] { return parse_rounding(name); });
}

void read(const JsonReader& value, RoundingMode& field) {
  Rounding rounding;
  read(value, rounding);
  if (rounding.stochastic()) value.fail("a rounding without random bits");
  field = rounding.mode;
}

void read(const JsonReader& value, Overflow& field) {
  const std::string name = text(value);
  field = at(value, [&] { return parse_overflow(name); });
}

void read(const JsonReader& value, std::uint64_t& field) {
  const std::string digits = text(value);
  const char* end = digits.data() + digits.size();
  const char* begin = digits.starts_with("0x") ? digits.data() + 2 : end;
  const auto [stop, error] = std::from_chars(begin, end, field, 16);
  if (error != std::errc{} || stop != end) value.fail("a code in hexadecimal, as in \"0x7fff\"");
}

void read(const JsonReader& value, Sparsity& field) {
  field = {};
  if (value.is_null()) return;
  const std::string pattern = text(value);
  const char* end = pattern.data() + pattern.size();
  const auto kept = std::from_chars(pattern.data(), end, field.kept);
  const bool colon = kept.ec == std::errc{} && kept.ptr != end && *kept.ptr == ':';
  const auto group = std::from_chars(colon ? kept.ptr + 1 : end, end, field.group);
  if (group.ec != std::errc{} || group.ptr != end)
    value.fail("N:M, as in \"2:4\", or null for dense");
}

template <Named T>
void read(const JsonReader& value, T& field) {
  const auto names = names_of(T{});
  const std::vector<std::string> known(names.begin(), names.end());
  const std::string name = value.one_of(text(value), known, "value");
  field = static_cast<T>(std::find(known.begin(), known.end(), name) - known.begin());
}

/// What an object may hold, for those who gave something else.
constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"", R"({"numemu_unit": 1, "core": "exact", "accumulator": {"format": "float32"}})"},
    {"accumulator", R"({"format": "float32", "rounding": "rne"})"},
    {"alignment", R"({"fraction_bits": 25, "rounding": "rtz"})"},
    {"second", R"({"fraction_bits": 31, "c_fraction_bits": 24})"},
    {"chain", R"({"chunk": 64})"},
    {"tree", R"({"leaf": 2})"},
    {"subnormals", R"({"flush_inputs": true})"},
    {"scaling", R"({"point": "exponents", "format": "float8_e8m0fnu", "block": 32})"},
    {"input", R"({"format": "tfloat32", "rounding": "rtz"})"},
    {"outer", R"({"every": 128, "format": "float32"})"},
};

/// Every key of the form, nested ones with their path.
const std::vector<std::string>& all_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all{kVersionKey, kProductsKey};
    const UnitDescription any;
    for_each_field(any, [&](const char* key, const auto&) { all.emplace_back(key); });
    return all;
  }();
  return keys;
}

/// Reads field by field and notes what is wrong instead of stopping there.
class DescriptionReader {
 public:
  DescriptionReader(const JsonReader& root, std::string folder)
      : root_(root), folder_(std::move(folder)) {}

  /// Throws DescriptionErrors with everything found, contradictions included.
  UnitDescription read_all() {
    if (!require_object(root_, "")) throw DescriptionErrors(lines_);
    version();
    unknown_keys();
    fields();
    products();
    contradictions();
    if (!lines_.empty()) throw DescriptionErrors(lines_);
    return u_;
  }

 private:
  /// Runs `step`; an Error becomes a line, and the fields below `key` count as not read.
  template <class Step>
  void note(const std::string& key, const Step& step) {
    try {
      step();
    } catch (const Error& error) {
      // Keys and names in a file may have line ends; a message has none.
      std::string line = error.what();
      std::ranges::replace_if(
          line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
      lines_.push_back(std::move(line));
      failed_.push_back(key);
    }
  }

  bool require_object(const JsonReader& value, const std::string& key) {
    if (value.value().is_object()) return true;
    const auto example =
        std::ranges::find(kExamples, std::string_view(key), [](const auto& e) { return e.first; });
    note(key, [&] { value.fail(fmt::format("an object, such as {}", example->second)); });
    return false;
  }

  void version() {
    note(kVersionKey, [&] {
      if (!root_.has(kVersionKey))
        root_.fail(fmt::format("a key '{}' with the version 1", kVersionKey));
      if (root_.member(kVersionKey).value() != kVersion)
        root_.member(kVersionKey).fail("version 1");
    });
  }

  /// The keys of the object and of every object in it must be known.
  void unknown_keys() {
    std::vector<std::string> top, objects;
    for (const std::string& key : all_keys()) {
      const auto [object, member] = object_and_member(key);
      const std::string& own = object.empty() ? member : object;
      if (std::ranges::find(top, own) == top.end()) top.push_back(own);
      if (!object.empty() && std::ranges::find(objects, object) == objects.end())
        objects.push_back(object);
    }
    unknown_keys(root_, "", top);
    for (const std::string& object : objects) {
      if (!root_.has(object) || !require_object(root_.member(object), object)) continue;
      std::vector<std::string> members;
      for (const std::string& key : all_keys()) {
        if (const auto [own, member] = object_and_member(key); own == object)
          members.push_back(member);
      }
      unknown_keys(root_.member(object), object, members);
    }
  }

  void unknown_keys(const JsonReader& object, const std::string& path,
                    const std::vector<std::string>& known) {
    for (const auto& item : object.value().items()) {
      const std::string& key = item.key();
      if (std::ranges::find(known, key) != known.end()) continue;
      std::vector<std::string> elsewhere;
      for (const std::string& one : all_keys()) {
        if (object_and_member(one).second == key) elsewhere.push_back(one);
      }
      note(path.empty() ? key : path + "." + key, [&] {
        throw Error(fmt::format("{}: {}", object.where(),
                                elsewhere.empty()
                                    ? unknown_name("key", key, known)
                                    : fmt::format("unknown key '{}'; did you mean '{}'?", key,
                                                  joined(elsewhere, "' or '"))));
      });
      // What the misspelt key holds is not missing.
      if (const auto meant = suggested_name(key, known))
        failed_.push_back(path.empty() ? *meant : path + "." + *meant);
    }
  }

  void fields() {
    note("core", [&] {
      if (!root_.has("core")) root_.fail("a key 'core'");
    });
    for_each_field(u_, [&](const std::string& key, auto& field) {
      const auto [object, member] = object_and_member(key);
      const JsonReader parent = object.empty() ? root_ : root_.member(object);
      if (!parent.has(member)) return;
      const JsonReader value = parent.member(member);
      note(key, [&] { read(value, field); });
    });
    // What a fused unit keeps is what it is: no number would be a neutral default.
    const bool aligned = root_.has("alignment") && root_.member("alignment").has("fraction_bits");
    if (u_.core == CoreKind::fused && !aligned && !failed("alignment") && !failed("core")) {
      note(std::string(kFractionKey), [&] {
        root_.fail(fmt::format("a key '{}' with core fused: bits kept below the largest exponent",
                               kFractionKey));
      });
    }
    if (!root_.has("nan_code")) u_.nan_code = usual_nan(u_);
  }

  void products() {
    if (!root_.has(kProductsKey)) return;
    note(kProductsKey, [&] {
      const JsonReader products = root_.member(kProductsKey);
      const std::string path = (std::filesystem::path(folder_) / text(products)).string();
      u_.products = at(products, [&] { return read_products(u_, path); });
    });
  }

  /// Those of fields that were read; without a core, nothing is known of the others.
  void contradictions() {
    if (failed("core")) return;
    for (const DescriptionProblem& problem : DescriptionCheck(u_).run()) {
      if (!failed(problem.key))
        lines_.push_back(fmt::format("{}: {}", root_.where(), problem_text(u_, problem)));
    }
  }

  /// Whether this key was not read, or the object that it is in.
  bool failed(const std::string& key) const {
    return std::ranges::any_of(
        failed_, [&](const std::string& one) { return one == key || key.starts_with(one + "."); });
  }

  const JsonReader& root_;
  const std::string folder_;
  UnitDescription u_;
  std::vector<std::string> lines_, failed_;
};

}  // namespace

UnitDescription parse_description(const std::string& text, const std::string& where,
                                  const std::string& folder) {
  const Json json = parse_json(text, where);
  return DescriptionReader(JsonReader(json, where), folder).read_all();
}

UnitDescription read_description(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return parse_description(read_text(path), path, folder);
}

namespace {

Json json_of(int number) { return number; }
Json json_of(bool flag) { return flag; }
Json json_of(const std::optional<int>& number) { return number ? Json(*number) : Json(); }
Json json_of(const Format* format) { return format != nullptr ? Json(format->name) : Json(); }
Json json_of(const Sparsity& sparsity) {
  return sparsity == Sparsity{} ? Json() : Json(text_of(sparsity));
}
template <class T>
Json json_of(const T& field) {
  return text_of(field);
}

/// The fields that `written` chooses, in a fixed order.
template <class Written>
std::string json_text(const UnitDescription& u, const std::string& products_file,
                      const Written& written) {
  Json out = {{kVersionKey, kVersion}};
  for_each_field(u, [&](const std::string& key, const auto& field) {
    if (!written(key)) return;
    const auto [object, member] = object_and_member(key);
    (object.empty() ? out : out[object])[member] = json_of(field);
  });
  if (u.products != nullptr) out[kProductsKey] = products_file;
  return out.dump(2) + "\n";
}

}  // namespace

std::string description_json(const UnitDescription& u, const std::string& products_file) {
  check_description(u);
  const std::vector<std::string> changed = changed_fields(u);
  return json_text(u, products_file, [&](const std::string& key) {
    if (key == "nan_code") return u.nan_code != usual_nan(u);
    return key == "core" || key == "k" || key == "group" ||
           (key == kFractionKey && u.core == CoreKind::fused) ||
           std::find(changed.begin(), changed.end(), key) != changed.end();
  });
}

std::string description_template(CoreKind core) {
  UnitDescription u;
  u.name = "my.unit";
  u.core = core;
  const bool integer = is_integer_core(u);
  switch (core) {
    case CoreKind::fused:
      u.a = u.b = &find_format("float8_e4m3fn");
      u.k = u.group = 32;
      u.alignment.fraction_bits = 25;
      break;
    case CoreKind::integer:
      u.a = u.b = &find_format("int8");
      break;
    case CoreKind::xnor:
      u.a = u.b = &find_format("sign1");
      break;
    case CoreKind::table:
      u.a = u.b = &find_format("int4");
      u.products = std::make_shared<const std::vector<std::int32_t>>(1 << 8);
      break;
    case CoreKind::tree:
      u.k = u.group = 8;
      break;
    case CoreKind::chain:
    case CoreKind::exact:
      break;
  }
  if (!integer) u.accumulator.format = &find_format("float32");
  u.nan_code = usual_nan(u);
  check_description(u);
  return json_text(u, "products.npy", [&](const std::string& key) { return applies(u, key); });
}

void write_description(const UnitDescription& u, const std::string& path) {
  std::filesystem::path products = path;
  products.replace_extension(".products.npy");
  const std::string json = description_json(u, products.filename().string());
  if (u.products != nullptr) write_products(u, products.string());
  write_atomically(path, {json});
}

namespace {

Json text_schema(const char* description) {
  return {{"type", "string"}, {"description", description}};
}
Json or_null(Json schema) {
  schema["type"] = Json::array({schema["type"], "null"});
  return schema;
}

Json schema_of(const std::string&) { return text_schema("text without spaces"); }
Json schema_of(const Format*) {
  return or_null(text_schema("a format: a name, an alias or a descriptor such as e8m13"));
}
Json schema_of(int) { return {{"type", "integer"}}; }
Json schema_of(bool) { return {{"type", "boolean"}}; }
Json schema_of(const std::optional<int>&) { return or_null({{"type", "integer"}}); }
Json schema_of(const Rounding&) {
  return text_schema("rne, rna, rtz, rup, rdn, rodd; sr(8), sr(8,a) where draws are defined");
}
Json schema_of(RoundingMode) { return text_schema("rtz, rne, rodd or rdn"); }
Json schema_of(Overflow) {
  return {{"type", "string"}, {"enum", Json::array({"saturate", "propagate", "ieee"})}};
}
Json schema_of(std::uint64_t) {
  Json schema = text_schema("a code; the quiet NaN of D where none is given");
  schema["pattern"] = "^0x[0-9a-fA-F]{1,16}$";
  return schema;
}
Json schema_of(const Sparsity&) {
  Json schema = or_null(text_schema("N kept of M"));
  schema["pattern"] = "^[0-9]+:[0-9]+$";
  return schema;
}
template <Named T>
Json schema_of(T) {
  Json names = Json::array();
  for (const std::string_view name : names_of(T{})) names.push_back(std::string(name));
  return {{"type", "string"}, {"enum", names}};
}

}  // namespace

std::string description_schema() {
  Json properties;
  properties[kVersionKey] = {{"const", kVersion}, {"description", "the version of the form"}};
  const UnitDescription fresh;
  for_each_field(fresh, [&](const std::string& key, const auto& field) {
    Json schema = schema_of(field);
    const bool depends = key == "nan_code" || key == "core" || key == kFractionKey;
    // What a missing key means; nothing where it depends on others.
    if (!depends) schema["default"] = json_of(field);
    const auto [object, member] = object_and_member(key);
    if (object.empty()) {
      properties[member] = schema;
      return;
    }
    Json& nested = properties[object];
    if (nested.is_null()) nested = {{"type", "object"}, {"additionalProperties", false}};
    nested["properties"][member] = schema;
  });
  properties[kProductsKey] = text_schema("core table: a .npy file beside this one");
  const Json fused = {{"properties", {{"core", {{"const", "fused"}}}}}};
  const Json alignment = {
      {"required", Json::array({"alignment"})},
      {"properties", {{"alignment", {{"required", Json::array({"fraction_bits"})}}}}}};
  const Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                       {"title", "A matrix unit of numemu"},
                       {"type", "object"},
                       {"additionalProperties", false},
                       {"required", Json::array({kVersionKey, "core"})},
                       {"properties", properties},
                       {"if", fused},
                       {"then", alignment}};
  return schema.dump(2) + "\n";
}

}  // namespace numemu::unit
