#include "emu/unit/description/fields.hpp"

#include <fmt/format.h>

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

std::vector<std::string> changed_fields(const UnitDescription& u) {
  std::vector<std::string> defaults, changed;
  const UnitDescription fresh;
  for_each_field(fresh,
                 [&](const char*, const auto& field) { defaults.push_back(text_of(field)); });
  std::size_t i = 0;
  for_each_field(u, [&](const char* key, const auto& field) {
    if (text_of(field) != defaults[i++]) changed.emplace_back(key);
  });
  return changed;
}

}  // namespace numemu::unit
