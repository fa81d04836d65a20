#include "cli/product_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "cli/table.hpp"
#include "cli/talk.hpp"
#include "cli/unit_trace.hpp"
#include "emu/unit/description/fields.hpp"
#include "emu/unit/reference/divergence.hpp"
#include "emu/unit/reference/dot.hpp"
#include "emu/unit/reference/given_result.hpp"
#include "emu/unit/reference/nearness.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/containers.hpp"
#include "formats/error.hpp"
#include "formats/storage/number_text.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

using unit::Nearer;
using unit::UnitDescription;

constexpr std::uint64_t kApart = std::numeric_limits<std::uint64_t>::max();

/// One output that the two give differently.
struct Difference {
  std::int64_t output = 0;
  std::uint64_t ulps = 0;
};

struct Counts {
  std::int64_t differ = 0, judged = 0, unit = 0, other = 0;
  std::uint64_t most_ulps = 0;
};

bool same(const Format* x, const Format* y) {
  return x == y || (x != nullptr && y != nullptr && x->name == y->name);
}

/// Throws Error unless the second unit takes the arrays of the first and gives the same type.
void check_comparable(const unit::Unit& first, const unit::Unit& second, const unit::Gemm& g) {
  second.require_operands(*g.a.format, *g.b.format);
  const UnitDescription &u = *first.description(), &v = *second.description();
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

class Comparison {
 public:
  Comparison(const ProductOptions& options, const unit::Unit& unit, const GemmArrays& arrays)
      : options_(options),
        unit_(unit),
        u_(*unit.description()),
        register_(unit::result_register(u_)),
        arrays_(arrays) {
    if (names_results(options.compare)) {
      results_ = read_gemm_result(unit, options.compare, arrays.d);
    } else {
      other_ = &unit_named(options.compare);
      if (other_->description() == nullptr)
        throw Error("--compare: unit " + other_->row().name + " has no description");
      check_comparable(unit, *other_, arrays.batch.first);
      results_ = Array(arrays.d.type, arrays.d.shape);
      unit::Batch batch = arrays.batch;
      batch.first.d = results_.data.data();
      unit::multiply_batch(*other_, batch);
    }
    find_differences();
    judge();
  }

  void print() const {
    const std::string unit = unit_.row().name, other = other_name();
    fmt::print("{} against {}: {} of {} outputs differ", other, unit, counts_.differ,
               arrays_.batch.outputs());
    if (counts_.differ == 0) return fmt::print("\n");
    fmt::print(", by at most {}\n", ulps_text(counts_.most_ulps));
    fmt::print("nearer to the exact sum: {} {}, {} {}, neither {}{}\n", other, counts_.other, unit,
               counts_.unit, counts_.judged - counts_.other - counts_.unit,
               counts_.judged < counts_.differ
                   ? fmt::format(" (of {} outputs judged)", counts_.judged)
                   : "");
    std::vector<std::vector<std::string>> rows;
    for (const Difference& d : worst_) {
      const Judged j = judged(d);
      rows.push_back({"D[" + place_text(j.place, arrays_) + "]", text(j.own), text(j.given),
                      ulps_text(d.ulps), text(j.exact), nearer_name(j.nearer)});
    }
    fmt::print("{}", text_table({"output", unit, other, "apart", "exact sum", "nearer"}, rows));
    for (const Difference& d : worst_) print_parting(judged(d));
  }

  Json json() const {
    Json json = {{"unit", unit_.row().name},           {"other", utf8_text(other_name())},
                 {"outputs", arrays_.batch.outputs()}, {"differ", counts_.differ},
                 {"judged", counts_.judged},           {"unit_nearer", counts_.unit},
                 {"other_nearer", counts_.other}};
    if (counts_.most_ulps != kApart) json["most_ulps"] = counts_.most_ulps;
    Json list = Json::array();
    for (const Difference& d : worst_) {
      const Judged j = judged(d);
      Json one = {{"unit", hex_text(j.own)},
                  {"other", hex_text(j.given)},
                  {"exact", hex_text(j.exact)},
                  {"nearer", nearer_name(j.nearer)}};
      add_place(j.place, arrays_, one);
      if (d.ulps != kApart) one["ulps"] = d.ulps;
      add_parting(j, one);
      list.push_back(one);
    }
    json["worst"] = list;
    return json;
  }

 private:
  /// An output with both results.
  struct Judged {
    Place place;
    std::int64_t output = 0;
    Value own, given, exact;
    Nearer nearer = Nearer::neither;
  };

  std::string other_name() const {
    return other_ == nullptr ? harmless(options_.compare) : other_->row().name;
  }
  std::string nearer_name(Nearer n) const {
    return n == Nearer::first ? unit_.row().name : n == Nearer::second ? other_name() : "neither";
  }
  static std::string ulps_text(std::uint64_t ulps) {
    return ulps == kApart ? "NaN" : counted(static_cast<std::int64_t>(ulps), "ulp");
  }
  std::string text(const Value& v) const {
    return value_text(v, whole_numbers(unit_, arrays_.batch.first));
  }
  Value value(const Array& array, std::int64_t output) const {
    return unit::read_element(unit_.d_format(), register_, array.data.data(), output);
  }
  std::uint64_t code(const Array& array, std::int64_t output) const {
    if (unit_.d_format() != nullptr) return load_code(*unit_.d_format(), array.data.data(), output);
    return unit::code_of(nullptr, register_, value(array, output), 0);
  }
  unit::Gemm product(std::int64_t index) const {
    return unit::slice(unit_, arrays_.batch, index, index + 1).first;
  }

  void find_differences() {
    for (std::int64_t i = 0; i < arrays_.batch.outputs(); ++i) {
      const std::uint64_t own = code(arrays_.d, i), given = code(results_, i);
      if (own == given) continue;
      const std::uint64_t ulps = unit::ulps_between(unit_.d_format(), register_.bits, own, given);
      const bool both_nan = ulps == 0 && value(arrays_.d, i).kind == Class::nan;
      if (both_nan) continue;
      differences_.push_back({i, ulps});
      counts_.most_ulps = std::max(counts_.most_ulps, ulps);
    }
    counts_.differ = static_cast<std::int64_t>(differences_.size());
  }

  /// Exact sums cost much: at most so many outputs are judged, evenly spaced; then the worst are
  /// chosen among all.
  void judge() {
    constexpr std::int64_t kMostJudged = 10'000;
    const std::int64_t stride = std::max<std::int64_t>(counts_.differ / kMostJudged, 1);
    for (std::int64_t i = 0; i < counts_.differ; i += stride) {
      const Nearer nearer = judged(differences_[static_cast<std::size_t>(i)]).nearer;
      ++counts_.judged;
      counts_.unit += nearer == Nearer::first;
      counts_.other += nearer == Nearer::second;
    }
    const auto count =
        std::min(differences_.size(), static_cast<std::size_t>(options_.worst.value_or(kWorst)));
    worst_.resize(count);
    std::partial_sort_copy(differences_.begin(), differences_.end(), worst_.begin(), worst_.end(),
                           [](const Difference& x, const Difference& y) {
                             return x.ulps != y.ulps ? x.ulps > y.ulps : x.output < y.output;
                           });
  }

  Judged judged(const Difference& d) const {
    Judged j{place_of(d.output, arrays_.batch), d.output, value(arrays_.d, d.output),
             value(results_, d.output),         {},       Nearer::neither};
    const UnitDescription stored = unit::as_stored(u_);
    const unit::Gemm g = product(j.place.product);
    const unit::ReferenceDot dot(stored, g);
    j.exact = dot.exact(j.place.i, j.place.j);
    j.nearer = unit::nearer(dot, j.place.i, j.place.j, j.own, j.given);
    return j;
  }

  unit::Divergence divergence(const Judged& j, const unit::Gemm& g) const {
    return unit::find_divergence(u_, *other_->description(), g, j.place.i, j.place.j, j.output);
  }
  std::vector<std::string> explanation(const Judged& j, const unit::Gemm& g) const {
    return unit::explain_result(u_, g, j.place.i, j.place.j, j.output, j.given);
  }
  static UnitTrace::Window window(const unit::DivergentSide& side) {
    return {side.begin, side.end, side.begin_term, side.end_term};
  }

  void print_parting(const Judged& j) const {
    const unit::Gemm g = product(j.place.product);
    const std::string place = place_text(j.place, arrays_);
    if (other_ == nullptr) {
      for (const std::string& line : explanation(j, g)) fmt::print("D[{}]: {}\n", place, line);
      return;
    }
    const unit::Divergence d = divergence(j, g);
    fmt::print("\nD[{}] parts in {}\n", place, unit::divergence_line(d));
    if (d.agreed > 0) fmt::print("the first {} agree\n", counted(d.agreed, "product"));
    const UnitTrace first(unit_, g, j.place.i, j.place.j, d.first.trace);
    const UnitTrace second(*other_, g, j.place.i, j.place.j, d.second.trace);
    fmt::print("{}", side_by_side(unit_.row().name + "\n" + first.text(window(d.first)),
                                  other_name() + "\n" + second.text(window(d.second))));
  }

  void add_parting(const Judged& j, Json& json) const {
    const unit::Gemm g = product(j.place.product);
    if (other_ == nullptr) {
      Json lines = Json::array();
      for (const std::string& line : explanation(j, g)) lines.push_back(line);
      json["explanation"] = lines;
      return;
    }
    const unit::Divergence d = divergence(j, g);
    json["parts_in"] = unit::divergence_line(d);
    json["products_agreed"] = d.agreed;
    json["unit_steps"] =
        UnitTrace(unit_, g, j.place.i, j.place.j, d.first.trace).json(window(d.first));
    json["other_steps"] =
        UnitTrace(*other_, g, j.place.i, j.place.j, d.second.trace).json(window(d.second));
  }

  /// Two texts as two columns.
  static std::string side_by_side(const std::string& left, const std::string& right) {
    const auto lines_of = [](const std::string& text) {
      std::istringstream in(text);
      std::vector<std::string> lines;
      for (std::string line; std::getline(in, line);) lines.push_back(line);
      return lines;
    };
    std::vector<std::string> a = lines_of(left), b = lines_of(right);
    std::size_t width = 0;
    for (const std::string& line : a) width = std::max(width, line.size());
    a.resize(std::max(a.size(), b.size()));
    b.resize(a.size());
    std::string text;
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::string line = fmt::format("{:{}} | {}", a[i], width, b[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

  const ProductOptions& options_;
  const unit::Unit& unit_;
  const UnitDescription& u_;
  const unit::Register& register_;
  const GemmArrays& arrays_;
  const unit::Unit* other_ = nullptr;  ///< null where results are compared
  Array results_;
  std::vector<Difference> differences_, worst_;
  Counts counts_;
};

}  // namespace

bool names_results(const std::string& compare) { return compare.ends_with(".npy"); }

void print_comparison(const ProductOptions& options, const unit::Unit& unit,
                      const GemmArrays& arrays) {
  if (unit.description() == nullptr)
    throw Error("--compare: unit " + unit.row().name + " has no description");
  const Comparison comparison(options, unit, arrays);
  if (options.json) {
    fmt::print("{}\n", comparison.json().dump(2));
  } else {
    comparison.print();
  }
}

}  // namespace numemu::cli
