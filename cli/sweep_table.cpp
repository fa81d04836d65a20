#include "cli/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "cli/report_files.hpp"
#include "cli/table.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/gate_text.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/record.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

using experiments::Record;

/// Characters of a terminal that a sweep's table is meant for, and of a name where it has to be
/// cut.
constexpr std::size_t kTableWidth = 120, kShortName = 20;

std::string figure(const std::optional<double>& x, const char* format) {
  return x ? fmt::format(fmt::runtime(format), *x) : "-";
}

std::string percent(const std::optional<double>& share, const char* format) {
  return share ? experiments::percent_text(*share, format) : "-";
}

std::string ends(const std::optional<double>& low, const std::optional<double>& high,
                 const char* format) {
  if (!low || !high) return "-";
  return fmt::format("[{}, {}]", percent(low, format), percent(high, format));
}

std::string short_title(const experiments::Measure& measure) {
  if (!measure.is_bits()) return measure.title;
  return std::string_view(measure.name) == "bits_per_token" ? "bits/token" : "bits/char";
}

/// "int8 rne saturate absmax/tensor" as the row's role has them; a mask alone "float32 MASK".
std::string role_text(const experiments::RoleRecord& role) {
  std::string out = role.format;
  for (const std::string& part : {role.rounding, role.overflow}) {
    if (!part.empty()) out += " " + part;
  }
  if (!role.scale.empty()) out += " " + role.scale + "/" + role.granularity;
  return role.mask.empty() ? out : out + " " + role.mask;
}

/// Resamples draw samples of several classes, and none of them differs in top-1.
bool top1_is_alike(const Record& r) {
  if (!r.eval_images) return false;
  const experiments::RowScore* const score = r.row->score("top1");
  return score && !none_differs(*score, static_cast<std::int64_t>(*r.eval_images)).empty();
}

/// What takes room, in the order in which it is given up. Columns of one kind go together.
enum class Kind : std::uint8_t {
  kept,
  conversions,  ///< rounding, overflow and scale rule beside formats
  unit_names,   ///< the first parts of units' names
  top1_interval,
  perplexity,
  bits,
  top1,  ///< where rows are judged by another figure
  layers,
  unit,
  settings,
  predicted,
  formats,  ///< of rows with names
  names,    ///< the ends of long names
};

struct KindWords {
  Kind kind;
  const char* words;
};
constexpr KindWords kGivenUp[] = {{Kind::conversions, "rounding, overflow and scale rule"},
                                  {Kind::unit_names, "whole names of units"},
                                  {Kind::top1_interval, "intervals of top-1"},
                                  {Kind::perplexity, "perplexity"},
                                  {Kind::bits, "bits"},
                                  {Kind::top1, "top-1"},
                                  {Kind::layers, "layers"},
                                  {Kind::unit, "unit"},
                                  {Kind::settings, "settings"},
                                  {Kind::predicted, "predictions"},
                                  {Kind::formats, "formats"},
                                  {Kind::names, "whole names"}};
using Kinds = std::set<Kind>;

struct Column {
  std::string title;
  Kind kind;
  std::function<std::string(const Record&)> cell;
};

/// What a row is judged by: figure, change, and the change's interval; "-" where it is judged by
/// another measure.
void add_judged(const experiments::Measure& heading, std::vector<Column>& columns) {
  const auto cell = [&heading](auto text) {
    return [&heading, text](const Record& r) {
      return r.judged.measure == &heading ? text(r, r.judged) : std::string("-");
    };
  };
  using Judged = experiments::JudgedFigure;
  columns.push_back({short_title(heading), Kind::kept, cell([](const Record&, const Judged& j) {
                       return experiments::figure_text(*j.measure, j.value);
                     })});
  columns.push_back({"change", Kind::kept, cell([](const Record&, const Judged& j) {
                       return experiments::figure_text(*j.measure, j.difference, true);
                     })});
  columns.push_back({"95 %", Kind::kept, cell([](const Record& r, const Judged& j) {
                       const bool interval = j.difference_low && j.difference_high &&
                                             *j.difference_low < *j.difference_high &&
                                             !r.is_baseline();
                       return interval ? experiments::interval_text(*j.measure, j.difference_low,
                                                                    j.difference_high, true)
                                       : "-";
                     })});
}

void add_top1(Kind kind, std::vector<Column>& columns) {
  columns.push_back({"top-1 %", kind, [](const Record& r) { return percent(r.top1, "{:.2f}"); }});
  columns.push_back({"95 %", kind == Kind::kept ? Kind::top1_interval : kind,
                     [](const Record& r) { return ends(r.ci_low, r.ci_high, "{:.2f}"); }});
  columns.push_back({"change", kind, [](const Record& r) {
                       return r.is_baseline() ? "-" : percent(r.difference, "{:+.2f}");
                     }});
  columns.push_back({"95 %", kind, [](const Record& r) {
                       return r.is_baseline() ? "-"
                              : top1_is_alike(r)
                                  ? "none differs"
                                  : ends(r.difference_low, r.difference_high, "{:+.2f}");
                     }});
}

/// All columns that the rows have something for.
std::vector<Column> columns_of(const std::vector<Record>& records, const Kinds& without) {
  const auto any = [&records](auto test) { return std::ranges::any_of(records, test); };
  const experiments::Measure& judged = experiments::measure_of(records);
  const bool recipes = records.size() > 1 && any([](const Record& r) { return !r.recipe.empty(); });
  const bool named =
      recipes && std::ranges::all_of(records, [](const Record& r) { return !r.recipe.empty(); });
  std::vector<Column> columns;
  if (recipes)
    columns.push_back(
        {"recipe", Kind::kept, [](const Record& r) { return r.recipe.empty() ? "-" : r.recipe; }});
  const auto role = [&](const char* title, auto of) {
    const bool whole = !without.contains(Kind::conversions);
    columns.push_back({title, named ? Kind::formats : Kind::kept, [=](const Record& r) {
                         return whole ? role_text(of(r)) : experiments::short_format(of(r).format);
                       }});
  };
  role(
      "weights", [](const Record& r) -> const auto& { return r.weight; });
  role(
      "activations", [](const Record& r) -> const auto& { return r.activation; });
  if (any([](const Record& r) { return !r.other.empty(); }))
    columns.push_back({"layers", Kind::layers, [](const Record& r) { return r.other; }});
  if (any([](const Record& r) { return !r.settings.empty(); }))
    columns.push_back({"settings", Kind::settings, [](const Record& r) { return r.settings; }});
  const bool short_units = without.contains(Kind::unit_names);
  columns.push_back({"unit", Kind::unit, [=](const Record& r) {
                       return short_units ? experiments::short_unit(r.unit) : r.unit;
                     }});
  columns.push_back(
      {"W bits", Kind::bits, [](const Record& r) { return figure(r.bits_weight, "{:.2f}"); }});
  columns.push_back(
      {"A bits", Kind::bits, [](const Record& r) { return figure(r.bits_activation, "{:.2f}"); }});
  if (!judged.is_top1()) add_judged(judged, columns);
  if (any([](const Record& r) { return r.perplexity.has_value(); }))
    columns.push_back({"perplexity", Kind::perplexity, [](const Record& r) {
                         return r.perplexity ? experiments::decimal_text(*r.perplexity, 3) : "-";
                       }});
  if (judged.is_top1() || any([](const Record& r) { return r.top1.has_value(); }))
    add_top1(judged.is_top1() ? Kind::kept : Kind::top1, columns);
  if (experiments::any_gate(records))
    columns.push_back({"gate", Kind::kept, experiments::gate_words});
  // Beside that of the test samples.
  columns.push_back({std::string_view(judged.name) == "sqnr" ? "SQNR dB (reference)" : "SQNR dB",
                     Kind::kept, [](const Record& r) {
                       if (r.not_finite && !r.sqnr_db) return std::string("NaN");
                       const auto sqnr = r.sqnr_interval();
                       return figure(r.sqnr_db, "{:.1f}") +
                              (sqnr ? fmt::format(" [{:.1f}, {:.1f}]", sqnr->first, sqnr->second)
                                    : "");
                     }});
  if (experiments::any_predictions(records))
    columns.push_back({"predicted", Kind::predicted, [](const Record& r) {
                         return figure(r.predicted_sqnr_db, "{:.1f}") +
                                (r.unit_ignored() ? "*" : "");
                       }});
  // Without a column that may be all that tells two rows apart they have their numbers.
  const bool apart = std::ranges::none_of(columns, [&](const Column& c) {
    return c.kind > Kind::unit_names && without.contains(c.kind) && c.kind != Kind::top1_interval;
  });
  std::erase_if(columns, [&](const Column& c) { return without.contains(c.kind); });
  if (!apart || without.contains(Kind::names))
    columns.insert(columns.begin(), {"#", Kind::kept, [](const Record& r) {
                                       return fmt::format("{}", r.position + 1);
                                     }});
  return columns;
}

std::string table_without(const std::vector<Record>& records, const Kinds& without) {
  const std::vector<Column> columns = columns_of(records, without);
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(column.title);
  std::vector<std::vector<std::string>> cells;
  for (const Record& r : records) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const Column& column : columns) {
      std::string cell = column.cell(r);
      const bool name =
          column.title == "recipe" || column.title == "weights" || column.title == "activations";
      if (name && without.contains(Kind::names) && cell.size() > kShortName)
        cell = cell.substr(0, kShortName - 3) + "...";
      line.push_back(std::move(cell));
    }
  }
  return text_table(header, cells);
}

std::size_t width_of(const std::string& table) {
  std::size_t widest = 0;
  for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1)
    widest = std::max(widest, table.find('\n', at) - at);
  return widest;
}

/// Rounding, overflow and scale rule of the roles of all rows, where they agree.
std::string common_conversion(const std::vector<Record>& records) {
  std::set<std::string> all;
  for (const Record& r : records) {
    for (const experiments::RoleRecord* role : {&r.weight, &r.activation}) {
      const std::string text = role_text(*role);
      const std::size_t behind = text.find(' ');
      if (behind != std::string::npos) all.insert(text.substr(behind + 1));
    }
  }
  return all.size() == 1 ? *all.begin() : "";
}

}  // namespace

std::string sweep_table(const std::vector<Record>& records) {
  Kinds without;
  std::string table = table_without(records, without);
  std::vector<std::string> left_out;
  for (const KindWords& given_up : kGivenUp) {
    if (records.size() < 2 || width_of(table) <= kTableWidth) break;
    without.insert(given_up.kind);
    std::string narrower = table_without(records, without);
    if (narrower == table) continue;
    table = std::move(narrower);
    left_out.emplace_back(given_up.words);
  }
  if (left_out.empty()) return table;
  const std::string common = common_conversion(records);
  if (!common.empty() && without.contains(Kind::conversions)) {
    table += "rounding, overflow and scale rule: " + common + "\n";
    std::erase(left_out, kGivenUp[0].words);
  }
  if (left_out.empty()) return table;
  return table + joined(left_out, ", ") + ": in the report and report.csv\n";
}

}  // namespace numemu::cli
