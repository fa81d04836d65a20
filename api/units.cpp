#include "api/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "emu/unit/description/fields.hpp"
#include "emu/unit/description/json.hpp"
#include "emu/unit/description/words.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/call_text.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/float_guard.hpp"
#include "formats/joined.hpp"

namespace numemu::api {
namespace {

/// Pieces of work small enough that long work shows itself. A stochastic register counts its
/// elements in the whole batch, which is then one piece.
class Multiplier {
 public:
  Multiplier(const unit::Unit& unit, const MultiplyOptions& options, Array& flags)
      : unit_(unit), options_(options), flags_(options.flags ? flags.as<std::uint8_t>() : nullptr) {
    constexpr std::int64_t kQuick = std::int64_t{1} << 30, kSlowRate = 1 << 6;
    const unit::UnitDescription* u = unit.description();
    whole_ = u != nullptr && u->accumulator.rounding.stochastic();
    budget_ = by_reference() ? kQuick / kSlowRate : kQuick;
  }

  void multiply(const unit::Batch& batch) {
    if (batch.count == 1) return by_rows(batch);
    const unit::Gemm& g = batch.first;
    const std::int64_t macs = std::max<std::int64_t>(g.m * g.n * g.k, 1);
    each_piece(batch.count, macs, "products", [&](std::int64_t begin, std::int64_t end) {
      run(unit::slice(unit_, batch, begin, end), begin * g.m * g.n);
    });
  }

 private:
  bool by_reference() const { return options_.reference || flags_ != nullptr; }

  void run(const unit::Batch& part, std::int64_t first_output) const {
    if (by_reference()) {
      unit::multiply_batch_reference(unit_, part,
                                     flags_ == nullptr ? nullptr : flags_ + first_output);
    } else {
      unit::multiply_batch(unit_, part);
    }
  }

  template <class Piece>
  void each_piece(std::int64_t count, std::int64_t macs, const char* unit, const Piece& piece) {
    const std::int64_t size = whole_ ? count : std::max<std::int64_t>(budget_ / macs, 1);
    if (size >= count) return piece(std::int64_t{0}, count);
    const auto tell = [&](std::int64_t done) {
      if (options_.on_progress)
        options_.on_progress(unit, static_cast<double>(done), static_cast<double>(count));
    };
    tell(0);
    for (std::int64_t begin = 0; begin < count; begin += size) {
      const std::int64_t end = std::min(count, begin + size);
      piece(begin, end);
      tell(end);
    }
  }

  void by_rows(const unit::Batch& batch) {
    const unit::Gemm& g = batch.first;
    const auto kept = static_cast<std::int64_t>(g.a.gather->depth.size());
    const unit::UnitDescription* u = unit_.description();
    const std::int64_t blocks =
        u != nullptr && u->scaling.block != 0 ? (g.k + u->scaling.block - 1) / u->scaling.block : 0;
    const std::int64_t c_bytes = g.m * g.n == 0 ? 0 : bytes_of_result(unit_, unit_.c_format());
    const std::int64_t d_bytes = g.m * g.n == 0 ? 0 : bytes_of_result(unit_, unit_.d_format());
    const std::int64_t macs = std::max<std::int64_t>(g.n * g.k, 1);
    each_piece(g.m, macs, "rows", [&](std::int64_t begin, std::int64_t end) {
      if (end - begin == g.m) return run(batch, 0);
      unit::Batch rows = batch;
      unit::Gemm& part = rows.first;
      part.m = end - begin;
      unit::Gather own = *g.a.gather;
      own.row.assign(g.a.gather->row.begin() + begin, g.a.gather->row.begin() + end);
      part.a.gather = &own;
      if (g.c != nullptr) part.c = static_cast<const std::byte*>(g.c) + begin * g.n * c_bytes;
      part.d = static_cast<std::byte*>(g.d) + begin * g.n * d_bytes;
      if (g.scale_a != nullptr) part.scale_a = g.scale_a + begin * blocks;
      if (g.kept != nullptr) part.kept = g.kept + begin * kept;
      run(rows, begin * g.n);
    });
  }
  static std::int64_t bytes_of_result(const unit::Unit& unit, const Format* format) {
    return unit::bytes_of(format, unit.description() == nullptr
                                      ? unit::Register{}
                                      : unit::result_register(*unit.description()));
  }

  const unit::Unit& unit_;
  const MultiplyOptions& options_;
  std::uint8_t* flags_;
  bool whole_ = false;
  std::int64_t budget_ = 0;
};

/// D = RNE(RNE(alpha * acc) + C), acc the product without C.
void apply_alpha(float alpha, Product& p) {
  const FloatGuard guard;
  auto* values = p.d.as<float>();
  const auto* c = static_cast<const float*>(p.gemm.c);
  const std::int64_t own = p.batch.c_shared ? p.c.elements() : p.d.elements();
  for (std::int64_t i = 0; i < p.d.elements(); ++i) {
    const float scaled = alpha * values[i];
    const float sum = scaled + (c == nullptr ? 0.0f : c[i % own]);
    values[i] = sum != sum ? std::bit_cast<float>(0x7fc00000u) : sum;
  }
}

/// "m < 2 and n < 3"
std::string limits(const std::vector<std::string>& axes, const ArrayShape& d) {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    text += i == 0 ? "" : i + 1 == axes.size() ? " and " : ", ";
    text += fmt::format("{} < {}", axes[i], d[i]);
  }
  return text;
}

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
    throw usage_error("--compare: unit " + unit.row().name + " has no description");
  return *unit.description();
}

/// Throws Error unless the second unit takes the arrays of the first and gives the same type.
void check_comparable(const unit::Unit& first, const unit::Unit& second, const unit::Gemm& g) {
  const UnitDescription &u = described(first), &v = described(second);
  second.require_operands(*g.a.format, *g.b.format);
  const auto refuse = [&](std::string_view what) {
    throw usage_error(fmt::format("--compare: unit {} and unit {} have different {}",
                                  second.row().name, first.row().name, what));
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

/// Those whose source has a word that fits, in letters of either case: the set of an instruction.
std::vector<const unit::Unit*> units_of_words(const std::string& pattern) {
  const auto large = [](std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
  };
  std::vector<const unit::Unit*> units;
  for (const unit::Unit* one : unit::all_units()) {
    const std::string source = large(one->row().source);
    for (std::size_t from = 0, to = 0; from < source.size(); from = to + 1) {
      to = std::min(source.find_first_of(" ,;:()", from), source.size());
      if (!glob_match(large(pattern), source.substr(from, to - from))) continue;
      units.push_back(one);
      break;
    }
  }
  return units;
}

}  // namespace

UnitPtr open_unit(const std::string& name) {
  if (name.starts_with('{')) return unit::make_unit(unit::parse_description(name, "unit"));
  if (is_unit_file(name)) return unit::make_unit(unit::read_description(name));
  return {UnitPtr(), &unit::find_unit(name)};  // lives as long as the program
}

std::vector<const unit::Unit*> find_units(const std::string& pattern) {
  if (pattern.empty()) return unit::all_units();
  std::vector<const unit::Unit*> units = unit::units_like(pattern);
  if (pattern.find_first_of("*?") == pattern.npos) {
    try {
      return {&unit::find_unit(pattern)};
    } catch (const Error&) {
      if (units.size() < 2) throw;
    }
  }
  if (units.empty()) units = units_of_words(pattern);
  if (units.empty()) throw Error("no unit fits '" + pattern + "'; the command units lists them");
  return units;
}

Json unit_json(const unit::Unit& one) {
  const unit::UnitRow& row = one.row();
  Json json = {{"name", row.name},
               {"alias", row.alias},
               {"operand", row.operand},
               {"result", row.result},
               {"accumulation", row.accumulation},
               {"grade", unit::to_string(row.grade)},
               {"letter", std::string(1, unit::letter_of(row.grade))},
               {"source", row.source},
               {"modifiers", row.modifiers}};
  if (const unit::UnitDescription* u = one.description()) {
    json["code"] = unit::description_code(*u);
    json["parameters"] = Json::parse(unit::description_json(*u));
  }
  return json;
}

void multiply(Product& p, const MultiplyOptions& options) {
  const unit::Unit& unit = *p.unit;
  if (options.flags) unit::require_flags(unit);
  if (options.alpha && (unit.d_format() == nullptr || unit.d_format()->name != "float32"))
    throw usage_error(fmt::format("--alpha: expected a unit with float32 results, {} gives {}",
                                  unit.row().name, unit.row().result));
  p.flags = options.flags ? Array(ArrayType::uint8, p.d.shape) : Array();
  if (p.batch.outputs() == 0) return;
  unit::Batch batch = p.batch;
  if (options.alpha) batch.first.c = nullptr;
  Multiplier(unit, options, p.flags).multiply(batch);
  if (options.alpha) apply_alpha(*options.alpha, p);
}

std::unique_ptr<Product> gemm(UnitPtr unit, Operands operands, const MultiplyOptions& options) {
  std::unique_ptr<Product> product = make_product(std::move(unit), std::move(operands));
  multiply(*product, options);
  return product;
}

std::unique_ptr<Product> dot(UnitPtr unit, Operands operands, const MultiplyOptions& options) {
  operands.shape = ProductShape::dots;
  return gemm(std::move(unit), std::move(operands), options);
}

std::int64_t output_of(const Place& place, const unit::Batch& batch) {
  return (place.product * batch.first.m + place.i) * batch.first.n + place.j;
}

Place place_of(std::int64_t output, const unit::Batch& batch) {
  const std::int64_t row = output / batch.first.n;
  return {row / batch.first.m, row % batch.first.m, output % batch.first.n};
}

std::string place_text(const Place& place, const Product& p) {
  switch (p.d.shape.size()) {
    case 1:
      return fmt::format("{}", place.product);
    case 2:
      return fmt::format("{},{}", place.i, place.j);
    default:
      return fmt::format("{},{},{}", place.product, place.i, place.j);
  }
}

Place parse_place(const std::string& option, const std::string& text, const Product& p) {
  constexpr std::array<const char*, 3> kAxes = {"b", "m", "n"};
  const ArrayShape& d = p.d.shape;
  const std::vector<std::string> axes(kAxes.end() - static_cast<std::ptrdiff_t>(d.size()),
                                      kAxes.end());
  const auto fail = [&](const std::string& what) {
    return Error(fmt::format("{} {}: expected {} with {}{}", option, text, joined(axes, ","),
                             limits(axes, d), what));
  };
  ArrayShape place;
  const char *at = text.data(), *end = at + text.size();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axis > 0 && (at == end || at + 1 == end))
      throw fail(fmt::format(", {} is missing", axes[axis]));
    if (axis > 0 && *at++ != ',') throw fail("");
    std::int64_t number = -1;
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc{} || number < 0 || number >= d[axis]) throw fail("");
    at = read.ptr;
    place.push_back(number);
  }
  if (at != end) throw fail("");
  if (place.size() == 1) return {place[0], 0, 0};
  const std::size_t last = place.size() - 1;
  return {last == 2 ? place[0] : 0, place[last - 1], place[last]};
}

TracedOutput::TracedOutput(const unit::Unit& traced, const unit::Gemm& g, std::int64_t i,
                           std::int64_t j, unit::Trace steps)
    : unit(&traced),
      gemm(g),
      trace(std::move(steps)),
      losses(unit::find_losses(*traced.description(), g, i, j, trace)) {}

TracedOutput trace(const Product& p, const Place& place) {
  const unit::UnitDescription* u = p.unit->description();
  if (u == nullptr)
    throw usage_error("unit " + p.unit->row().name + " has no description and cannot be traced");
  const unit::Gemm g = unit::slice(*p.unit, p.batch, place.product, place.product + 1).first;
  unit::Trace steps;
  unit::ReferenceDot(*u, g).outcome(place.i, place.j, place.i * g.n + place.j,
                                    output_of(place, p.batch), &steps);
  return {*p.unit, g, place.i, place.j, std::move(steps)};
}

Comparison compare(const Product& product, const Array& given, std::size_t worst) {
  require_results(product, given, "results");
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
