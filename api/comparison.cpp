// D of a unit beside other results: which differ, which is nearer to the exact sums, where two
// units part.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "api/units.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"

namespace numemu::api {
namespace {

using unit::UnitDescription;

constexpr std::uint64_t kApart = std::numeric_limits<std::uint64_t>::max();

/// One output that the two give differently.
struct Difference {
  std::int64_t output = 0;
  std::uint64_t ulps = 0;
};

std::optional<std::uint64_t> counted_ulps(std::uint64_t ulps) {
  return ulps == kApart ? std::nullopt : std::optional(ulps);
}

bool same(const Format* x, const Format* y) {
  return x == y || (x != nullptr && y != nullptr && x->name == y->name);
}

/// The description; throws Error where there is none.
const UnitDescription& described(const unit::Unit& unit) {
  if (unit.description() == nullptr)
    throw Error("--compare: unit " + unit.row().name + " has no description");
  return *unit.description();
}

/// Throws Error unless the second unit takes the arrays of the first and gives the same type.
void check_comparable(const unit::Unit& first, const unit::Unit& second, const unit::Gemm& g) {
  const UnitDescription &u = described(first), &v = described(second);
  second.require_operands(*g.a.format, *g.b.format);
  const auto refuse = [&](std::string_view what) {
    throw Error(fmt::format("--compare: unit {} and unit {} have different {}", second.row().name,
                            first.row().name, what));
  };
  if (!same(first.d_format(), second.d_format()) ||
      (first.d_format() == nullptr &&
       unit::result_register(u).bits != unit::result_register(v).bits))
    refuse(fmt::format("result types: {} and {}", second.row().result, first.row().result));
  if (g.c != nullptr && !same(first.c_format(), second.c_format())) refuse("formats of C");
  if (u.scaling.block != v.scaling.block || !same(u.scaling.format, v.scaling.format))
    refuse("block scales");
  if (!(u.sparsity == v.sparsity)) refuse("sparsity");
}

unit::Gemm product_of(const Product& p, const Place& place) {
  return unit::slice(*p.unit, p.batch, place.product, place.product + 1).first;
}

/// The outputs of a product beside other results.
class Results {
 public:
  Results(const Product& product, const Array& given)
      : p_(product),
        given_(given),
        u_(described(*product.unit)),
        register_(unit::result_register(u_)),
        stored_(unit::as_stored(u_)) {}

  std::vector<Difference> differences() const {
    std::vector<Difference> all;
    for (std::int64_t i = 0; i < p_.batch.outputs(); ++i) {
      const std::uint64_t own = code(p_.d, i), given = code(given_, i);
      if (own == given) continue;
      const std::uint64_t ulps =
          unit::ulps_between(p_.unit->d_format(), register_.bits, own, given);
      const bool both_nan = ulps == 0 && value(p_.d, i).kind == Class::nan;
      if (!both_nan) all.push_back({i, ulps});
    }
    return all;
  }

  ComparedOutput judged(const Difference& d) const {
    ComparedOutput one{
        place_of(d.output, p_.batch), d.output, counted_ulps(d.ulps), value(p_.d, d.output),
        value(given_, d.output),      {},       unit::Nearer::neither};
    const unit::Gemm g = product_of(p_, one.place);
    const unit::ReferenceDot dot(stored_, g);
    one.exact = dot.exact(one.place.i, one.place.j);
    one.nearer = unit::nearer(dot, one.place.i, one.place.j, one.own, one.given);
    return one;
  }

 private:
  Value value(const Array& array, std::int64_t output) const {
    return unit::read_element(p_.unit->d_format(), register_, array.data.data(), output);
  }
  std::uint64_t code(const Array& array, std::int64_t output) const {
    if (const Format* d = p_.unit->d_format()) return load_code(*d, array.data.data(), output);
    return unit::code_of(nullptr, register_, value(array, output), 0);
  }

  const Product& p_;
  const Array& given_;
  const UnitDescription& u_;
  const unit::Register& register_;
  const UnitDescription stored_;
};

}  // namespace

Comparison compare(const Product& product, const Array& given, std::size_t worst) {
  const Results results(product, given);
  std::vector<Difference> all = results.differences();
  Comparison comparison;
  comparison.product = &product;
  comparison.outputs = product.batch.outputs();
  comparison.differ = std::ssize(all);
  std::uint64_t most = 0;
  for (const Difference& d : all) most = std::max(most, d.ulps);
  comparison.most_ulps = counted_ulps(most);
  // At most so many are judged; then the worst are chosen among all.
  constexpr std::int64_t kMostJudged = 10'000;
  const std::int64_t stride = std::max<std::int64_t>(comparison.differ / kMostJudged, 1);
  for (std::int64_t i = 0; i < comparison.differ; i += stride) {
    const unit::Nearer nearer = results.judged(all[static_cast<std::size_t>(i)]).nearer;
    ++comparison.judged;
    comparison.unit_nearer += nearer == unit::Nearer::first;
    comparison.other_nearer += nearer == unit::Nearer::second;
  }
  std::vector<Difference> chosen(std::min(all.size(), worst));
  std::partial_sort_copy(all.begin(), all.end(), chosen.begin(), chosen.end(),
                         [](const Difference& x, const Difference& y) {
                           return x.ulps != y.ulps ? x.ulps > y.ulps : x.output < y.output;
                         });
  for (const Difference& d : chosen) comparison.worst.push_back(results.judged(d));
  return comparison;
}

Comparison compare(const Product& product, UnitPtr other, std::size_t worst) {
  check_comparable(*product.unit, *other, product.batch.first);
  Array results(product.d.type, product.d.shape);
  unit::Batch batch = product.batch;
  batch.first.d = results.data.data();
  unit::multiply_batch(*other, batch);
  Comparison comparison = compare(product, results, worst);
  comparison.other = std::move(other);
  return comparison;
}

Comparison compare(const Product& product, const std::string& other, std::size_t worst) {
  described(*product.unit);
  return is_results_file(other) ? compare(product, read_result(product, other), worst)
                                : compare(product, open_unit(other), worst);
}

std::vector<std::string> explain(const Comparison& comparison, const ComparedOutput& one) {
  const Product& p = *comparison.product;
  return unit::explain_result(*p.unit->description(), product_of(p, one.place), one.place.i,
                              one.place.j, one.output, one.given);
}

unit::Divergence find_divergence(const Comparison& comparison, const ComparedOutput& one) {
  const Product& p = *comparison.product;
  return unit::find_divergence(*p.unit->description(), *comparison.other->description(),
                               product_of(p, one.place), one.place.i, one.place.j, one.output);
}

}  // namespace numemu::api
