// Reads the JSON form field by field and notes everything that is wrong with it.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/json_form.hpp"
#include "emu/unit/description/products.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {
namespace {

constexpr std::int64_t kLargestNumber = std::int64_t{1} << 30;

/// Runs `read` and puts the key in front of an Error from below (an unknown format or rounding).
template <class Read>
auto at(const JsonReader& key, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", key.where(), error.what()), error.kind());
  }
}

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

}  // namespace numemu::unit
