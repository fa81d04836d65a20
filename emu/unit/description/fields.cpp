#include "emu/unit/description/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "formats/error.hpp"

namespace numemu::unit {
namespace {

// In the order of the enumerators.
constexpr std::string_view kCores[] = {"fused",   "chain", "tree", "exact",
                                       "integer", "xnor",  "table"};
constexpr std::string_view kOrders[] = {"ascending", "pairs_mod4", "odd_first"};
constexpr std::string_view kCEntries[] = {"in_alignment", "after_alignment", "after_rounding"};
constexpr std::string_view kNanRules[] = {"canonical", "x86"};
constexpr std::string_view kIntegerOverflows[] = {"wrap", "saturate_once", "saturate_each"};
constexpr std::string_view kScalingPoints[] = {"none", "exponents", "groups", "after_sum"};

/// The fields of a description that has only defaults, in their order.
struct Fresh {
  Fresh() {
    for_each_field(unit, [this](const char* key, const auto& field) {
      keys.push_back(key);
      fields.push_back(&field);
    });
    keys.push_back("products");
  }
  UnitDescription unit;
  std::vector<std::string_view> keys;
  std::vector<const void*> fields;
};

const Fresh& fresh() {
  static const Fresh kFresh;
  return kFresh;
}

}  // namespace

std::span<const std::string_view> names_of(CoreKind) { return kCores; }
std::span<const std::string_view> names_of(StepOrder) { return kOrders; }
std::span<const std::string_view> names_of(CEntry) { return kCEntries; }
std::span<const std::string_view> names_of(NanRule) { return kNanRules; }
std::span<const std::string_view> names_of(IntegerOverflow) { return kIntegerOverflows; }
std::span<const std::string_view> names_of(Scaling::Point) { return kScalingPoints; }

std::string text_of(const std::string& text) { return text; }
std::string text_of(const Format* format) { return format == nullptr ? "null" : format->name; }
std::string text_of(int number) { return std::to_string(number); }
std::string text_of(bool flag) { return flag ? "true" : "false"; }
std::string text_of(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "null";
}
std::string text_of(const Rounding& rounding) { return to_string(rounding); }
std::string text_of(RoundingMode mode) { return to_string(Rounding{.mode = mode}); }
std::string text_of(Overflow overflow) { return to_string(overflow); }
std::string text_of(std::uint64_t code) { return fmt::format("0x{:x}", code); }
std::string text_of(const Sparsity& sparsity) {
  return sparsity.kept == 0 && sparsity.dense()
             ? "null"
             : fmt::format("{}:{}", sparsity.kept, sparsity.group);
}

FieldSet field_set(std::span<const std::string_view> keys) {
  FieldSet set;
  for (const std::string_view key : keys) {
    const auto at = std::ranges::find(fresh().keys, key);
    if (at == fresh().keys.end()) throw Error("a unit has no field " + std::string(key));
    set.set(static_cast<std::size_t>(at - fresh().keys.begin()));
  }
  return set;
}

FieldSet changed_field_set(const UnitDescription& u) {
  FieldSet changed;
  std::size_t i = 0;
  for_each_field(u, [&](const char*, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    changed.set(i, field != *static_cast<const Field*>(fresh().fields[i]));
    ++i;
  });
  changed.set(i, u.products != nullptr);
  return changed;
}

std::vector<std::string> changed_fields(const UnitDescription& u) {
  const FieldSet set = changed_field_set(u);
  std::vector<std::string> changed;
  for (std::size_t i = 0; i < fresh().fields.size(); ++i) {
    if (set[i]) changed.emplace_back(fresh().keys[i]);
  }
  return changed;
}

}  // namespace numemu::unit
