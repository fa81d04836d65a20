// The fields of a unit description, each under its JSON key: declared once for the JSON form, the
// checks and the tables.
#pragma once
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::unit {

/// Calls visit(key, field) for every field but `products`, in the order of the JSON form. A key
/// with a point is a member of a nested object.
template <class Description, class Visit>
void for_each_field(Description& u, const Visit& visit) {
  visit("name", u.name);
  visit("a", u.a);
  visit("b", u.b);
  visit("c", u.c);
  visit("d", u.d);
  visit("core", u.core);
  visit("k", u.k);
  visit("group", u.group);
  visit("order", u.order);
  visit("c_entry", u.c_entry);
  visit("c_rounding", u.c_rounding);
  visit("plus_zero_sums", u.plus_zero_sums);
  visit("accumulator.format", u.accumulator.format);
  visit("accumulator.rounding", u.accumulator.rounding);
  visit("accumulator.overflow", u.accumulator.overflow);
  visit("accumulator.overflow_to_infinity", u.accumulator.overflow_to_infinity);
  visit("accumulator.bits", u.accumulator.bits);
  visit("accumulator.fraction", u.accumulator.fraction);
  visit("accumulator.integer_overflow", u.accumulator.integer);
  visit("alignment.fraction_bits", u.alignment.fraction_bits);
  visit("alignment.rounding", u.alignment.rounding);
  visit("alignment.zero_exponent", u.alignment.zero_exponent);
  visit("alignment.zero_c_counts", u.alignment.zero_c_counts);
  visit("alignment.floor", u.alignment.floor);
  visit("alignment.parts", u.alignment.parts);
  visit("second.fraction_bits", u.second.fraction_bits);
  visit("second.c_fraction_bits", u.second.c_fraction_bits);
  visit("second.c_dropped", u.second.c_dropped);
  visit("chain.chains", u.chain.chains);
  visit("chain.chunk", u.chain.chunk);
  visit("chain.fused", u.chain.fused);
  visit("chain.kahan", u.chain.kahan);
  visit("tree.leaf", u.tree.leaf);
  visit("tree.round_products", u.tree.round_products);
  visit("tree.plus_zero_products", u.tree.plus_zero_products);
  visit("subnormals.flush_inputs", u.subnormals.flush_inputs);
  visit("subnormals.inputs_to_plus_zero", u.subnormals.inputs_to_plus_zero);
  visit("subnormals.flush_c", u.subnormals.flush_c);
  visit("subnormals.flush_results", u.subnormals.flush_results);
  visit("subnormals.tiny_before_rounding", u.subnormals.tiny_before_rounding);
  visit("products_overflow", u.products_overflow);
  visit("nan", u.nan);
  visit("nan_code", u.nan_code);
  visit("scaling.point", u.scaling.point);
  visit("scaling.format", u.scaling.format);
  visit("scaling.block", u.scaling.block);
  visit("scaling.shift", u.scaling.shift);
  visit("sparsity", u.sparsity);
  visit("input.format", u.input.format);
  visit("input.rounding", u.input.rounding);
  visit("outer.every", u.outer.every);
  visit("outer.format", u.outer.accumulator.format);
  visit("outer.rounding", u.outer.accumulator.rounding);
  visit("outer.overflow", u.outer.accumulator.overflow);
  visit("outer.overflow_to_infinity", u.outer.accumulator.overflow_to_infinity);
  visit("outer.bits", u.outer.accumulator.bits);
  visit("outer.fraction", u.outer.accumulator.fraction);
  visit("outer.integer_overflow", u.outer.accumulator.integer);
}

/// The names of an enumeration, in the order of its enumerators. The argument selects the type.
std::span<const std::string_view> names_of(CoreKind);
std::span<const std::string_view> names_of(StepOrder);
std::span<const std::string_view> names_of(CEntry);
std::span<const std::string_view> names_of(NanRule);
std::span<const std::string_view> names_of(IntegerOverflow);
std::span<const std::string_view> names_of(Scaling::Point);

template <class T>
concept Named = requires(T value) {
  names_of(value);
};

/// A field as text: what JSON holds, without quotes.
std::string text_of(const std::string&);
std::string text_of(const Format*);
std::string text_of(int);
std::string text_of(bool);
std::string text_of(const std::optional<int>&);
std::string text_of(const Rounding&);
std::string text_of(RoundingMode);
std::string text_of(Overflow);
std::string text_of(std::uint64_t code);
std::string text_of(const Sparsity&);
template <Named T>
std::string text_of(T value) {
  return std::string(names_of(value)[static_cast<std::size_t>(value)]);
}

/// Fields in the order of for_each_field(), and `products` after the last of them.
using FieldSet = std::bitset<64>;
/// Throws Error naming a key that no field has.
FieldSet field_set(std::span<const std::string_view> keys);
/// The fields whose values are not the defaults of UnitDescription.
FieldSet changed_field_set(const UnitDescription&);
/// Their keys; without `products`.
std::vector<std::string> changed_fields(const UnitDescription&);

/// Products of one exact sum where scales belong to groups of a step.
constexpr int kScaledGroup = 16;

/// Products of one step: the group, or the whole instruction; 0 where a step takes the whole depth.
inline int products_of_step(const UnitDescription& u) { return u.group != 0 ? u.group : u.k; }
/// Cores whose sums are integers: nothing floating enters them.
inline bool is_integer_core(const UnitDescription& u) {
  return u.core == CoreKind::integer || u.core == CoreKind::xnor || u.core == CoreKind::table;
}
/// The format of D and of the input C; nullptr: two's complement.
inline const Format* result_format(const UnitDescription& u) {
  return u.d != nullptr ? u.d : result_register(u).format;
}
inline const Format* c_format(const UnitDescription& u) {
  return u.c != nullptr ? u.c : result_register(u).format;
}

}  // namespace numemu::unit
