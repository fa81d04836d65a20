// The fields of a description, and the fast paths: where a path does not understand one, it is not
// used.
#include "emu/unit/description/fields.hpp"

#include <algorithm>
#include <concepts>
#include <optional>
#include <set>
#include <utility>

#include "emu/unit/fast_paths.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/any_product.hpp"
#include "tests/emu/unit/by_path.hpp"

namespace fields_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

namespace {

template <class T>
std::vector<T> others(const T& now, std::vector<T> values) {
  std::erase(values, now);
  return values;
}

/// Other values of a field.
std::vector<bool> values_beside(bool now) { return {!now}; }
std::vector<int> values_beside(int now) { return others(now, {1, 2, 4, 16, 2 * now}); }
std::vector<std::optional<int>> values_beside(const std::optional<int>& now) {
  return others<std::optional<int>>(now, {std::nullopt, -126, -133, 8});
}
std::vector<const Format*> values_beside(const Format* now) {
  return others(now, {nullptr, &find_format("float16"), &find_format("bfloat16"),
                      &find_format("float8_e4m3fn"), &find_format("float8_e8m0fnu"),
                      &find_format("float32")});
}
std::vector<RoundingMode> values_beside(RoundingMode now) {
  return others(now, {RoundingMode::rne, RoundingMode::rtz, RoundingMode::rodd, RoundingMode::rdn});
}
std::vector<Rounding> values_beside(const Rounding& now) {
  return others(
      now, {Rounding{}, parse_rounding("rtz"), parse_rounding("rodd"), parse_rounding("sr(8)")});
}
std::vector<Overflow> values_beside(Overflow now) {
  return others(now, {Overflow::ieee, Overflow::saturate, Overflow::propagate});
}
std::vector<std::uint64_t> values_beside(std::uint64_t now) { return {now ^ 1}; }
std::vector<Sparsity> values_beside(const Sparsity& now) { return others(now, {Sparsity{2, 4}}); }
std::vector<std::string> values_beside(const std::string& now) { return {now + "x"}; }
template <Named T>
std::vector<T> values_beside(T now) {
  std::vector<T> values;
  for (std::size_t i = 0; i < names_of(now).size(); ++i) values.push_back(static_cast<T>(i));
  return others(now, values);
}

/// Calls visit(key, description) for the unit with one field changed, every field and several
/// values of each.
template <class Visit>
void for_each_change(const UnitDescription& base, const Visit& visit) {
  UnitDescription changed = base;
  for_each_field(changed, [&](std::string_view key, auto& field) {
    const auto before = field;
    for (const auto& value : values_beside(before)) {
      field = value;
      visit(key, changed);
    }
    field = before;
  });
}

bool states(const FastPath& path, std::string_view key) {
  return key == "name" || key == "a" || key == "b" ||
         std::ranges::find(path.fields, key) != path.fields.end();
}

/// A format for units that take any.
const char* any_operand(const UnitDescription& u) {
  return u.core == CoreKind::xnor ? "sign1" : u.core == CoreKind::integer ? "int8" : "float16";
}

/// What multiply_fast() does, if anything, is what the reference does. False for descriptions that
/// no unit can have.
bool equals_reference(const UnitDescription& description, Data data) {
  std::unique_ptr<Unit> unit;
  try {
    unit = make_unit(description);
  } catch (const Error&) {
    return false;
  }
  AnyProduct product(*unit, 3, 18, 32, data, 5, true, any_operand(description));
  const auto reference = product.reference();
  std::vector<std::uint8_t> d(reference.size(), 0xa5);
  Gemm g = product.gemm();
  g.d = d.data();
  if (!multiply_fast(description, g)) {
    CHECK(d == std::vector<std::uint8_t>(d.size(), 0xa5));
  } else {
    CHECK(d == reference);
  }
  return true;
}

/// For every path that this machine has: a description that it computes, under a name of its own.
std::vector<std::pair<const FastPath*, UnitDescription>> units_of_paths() {
  std::vector<std::pair<const FastPath*, UnitDescription>> units;
  std::vector<const Unit*> candidates = {&find_unit("neutral.mac.e5m10.rtz")};
  candidates.insert(candidates.end(), all_units().begin(), all_units().end());
  for (const FastPath& path : fast_paths()) {
    const auto computes = [&](const Unit* unit) {
      const UnitDescription* u = unit->description();
      if (u == nullptr || !understands(path, *u)) return false;
      AnyProduct product(*unit, 3, 70, 64, Data::moderate, 5, true, any_operand(*u));
      return unit->accepts(*product.gemm().a.format) && path.multiply(*u, product.gemm());
    };
    const auto found = std::ranges::find_if(candidates, computes);
    if (found == candidates.end()) continue;
    units.emplace_back(&path, *(*found)->description());
    units.back().second.name = "own";
  }
  return units;
}

}  // namespace

TEST_CASE("fields: every key is a field, stated once", "[fast]") {
  for (const FastPath& path : fast_paths()) {
    INFO(path.name);
    CHECK(field_set(path.fields).count() == path.fields.size());
  }
  constexpr std::string_view kUnknown[] = {"core", "colour"};
  CHECK_THROWS_WITH(field_set(kUnknown), Catch::Contains("colour"));
}

TEST_CASE("fields: a description with any other field changed is not given to the path", "[fast]") {
  for (const auto& [named, description] : units_of_paths()) {
    const auto& path = named;  // clang 14 refuses structured bindings in lambdas
    int refused = 0;
    for_each_change(description, [&](std::string_view key, const UnitDescription& u) {
      if (states(*path, key)) return;
      ++refused;
      INFO(path->name << " " << key);
      CHECK_FALSE(understands(*path, u));
    });
    INFO(path->name);
    CHECK(refused > 0);
  }
}

TEST_CASE("fields: with any one field changed a unit still gives the reference's bits", "[fast]") {
  std::set<std::string_view> valid;
  int count = 0;
  for (const auto& [named, description] : units_of_paths()) {
    const auto& path = named;
    for_each_change(description, [&](std::string_view key, const UnitDescription& u) {
      INFO(path->name << " " << key);
      const Data data = ++count % 2 == 0 ? Data::moderate : Data::codes;
      if (equals_reference(u, data)) valid.insert(key);
    });
  }
  // The others cannot change alone.
  CHECK(valid.size() > 30);
}

TEST_CASE("fields: the visitor names every member of a description", "[fast]") {
  // A member that is added to one of these structs without a line here does not compile; then
  // for_each_field() needs one, too.
  const UnitDescription u;
  const auto& [name, a, b, c, accumulator, d, core, k, group, order, c_entry, c_rounding,
               plus_zero_sums, alignment, second, chain, tree, subnormals, products_overflow, nan,
               nan_code, scaling, sparsity, input, outer, products] = u;
  const auto& [format, rounding, overflow, to_infinity, bits, fraction, integer] = accumulator;
  const auto& [fraction_bits, cut, zero_exponent, zero_c, floor, parts] = alignment;
  const auto& [sum_bits, c_bits, c_dropped] = second;
  const auto& [chains, chunk, fused, kahan] = chain;
  const auto& [leaf, round_products, plus_zero] = tree;
  const auto& [inputs, inputs_to_zero, flush_c, results, tiny] = subnormals;
  const auto& [point, scale, block, shift] = scaling;
  const auto& [read, read_rounding] = input;
  const auto& [every, second_register] = outer;
  const auto count = [](const auto&... members) { return sizeof...(members); };
  // Sparsity is one field; `products` has a place of its own.
  const std::size_t members =
      count(name, a, b, c, d, core, k, group, order, c_entry, c_rounding, plus_zero_sums,
            products_overflow, nan, nan_code, sparsity) +
      count(format, rounding, overflow, to_infinity, bits, fraction, integer) +
      count(fraction_bits, cut, zero_exponent, zero_c, floor, parts) +
      count(sum_bits, c_bits, c_dropped) + count(chains, chunk, fused, kahan) +
      count(leaf, round_products, plus_zero) +
      count(inputs, inputs_to_zero, flush_c, results, tiny) + count(point, scale, block, shift) +
      count(read, read_rounding) + count(every) +
      count(format, rounding, overflow, to_infinity, bits, fraction, integer);
  std::size_t visited = 0;
  for_each_field(u, [&](const char*, const auto&) { ++visited; });
  CHECK(visited == members);
  CHECK(products == nullptr);
  CHECK(second_register.format == nullptr);
}

}  // namespace fields_test
