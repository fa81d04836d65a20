// Writes the JSON form: the canonical one, and templates with every key.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/description/json.hpp"

#include <algorithm>
#include <filesystem>

#include "emu/unit/description/check.hpp"
#include "emu/unit/description/json_form.hpp"
#include "emu/unit/description/products.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::unit {
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

}  // namespace numemu::unit
