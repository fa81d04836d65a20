#include "experiments/report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "experiments/report/configurations.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/html_cells.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/verdicts.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::experiments {
namespace {

template <auto... path>
Column of(const char* name, const char* meaning) {
  return field<ReportRow, path...>(name, meaning);
}
/// Of the row itself, and of parts of it.
template <auto... path>
Column of_row(const char* name, const char* meaning) {
  return of<&ReportRow::row, path...>(name, meaning);
}
template <auto... path>
Column metric(const char* name, const char* meaning) {
  return of_row<&Row::metrics, path...>(name, meaning);
}
template <auto... path>
Column expected(const char* name, const char* meaning) {
  return of_row<&Row::predicted, &RowPrediction::accuracy, path...>(name, meaning);
}
template <auto... path>
Column of_gate(const char* name, const char* meaning) {
  return of_row<&Row::gate, path...>(name, meaning);
}

std::string words(Medium medium, const std::string& text) {
  return medium == Medium::html ? html_text_cell(text) : text;
}

/// The cell of a number that is missing.
std::string none(Medium medium) {
  return medium == Medium::html       ? html_number_cell({}, kNone)
         : medium == Medium::terminal ? "-"
                                      : "";
}

std::string number(Medium medium, const std::optional<double>& x, int digits) {
  if (medium == Medium::html) return html_number_cell(x, html_number(x, digits));
  return x ? fmt::format("{:.{}f}", *x, digits) : none(medium);
}

/// A share in percent; HTML and Markdown have its interval beside it.
std::string share(Medium medium, const std::optional<double>& x, const Member<Ends>& ci95,
                  bool sign) {
  const auto [low, high] = ci95.value_or(Ends());
  if (medium == Medium::html) return html_number_cell(x, html_share(x, low, high, sign));
  if (!x) return none(medium);
  if (medium == Medium::terminal) return percent_text(*x, sign ? "{:+.2f}" : "{:.2f}");
  if (!low || !high) return percent_text(*x);
  return fmt::format("{} ({} to {})", percent_text(*x), percent_text(*low), percent_text(*high));
}

/// The interval in a column of its own, on the terminal.
std::string ends(const Member<Ends>& ci95, const char* format) {
  const auto [low, high] = ci95.value_or(Ends());
  return percent_interval(low.value_or(NAN), high.value_or(NAN), format);
}

std::string role_cell(const ReportRole& r, Medium medium) {
  if (medium == Medium::terminal) return role_text(r);
  if (medium == Medium::markdown) {
    if (!r.quantized) return "float32";
    return fmt::format("{}, {}, {}, {} per {}", r.format, r.rounding, r.overflow, r.scale,
                       r.granularity) +
           (r.mask.empty() ? "" : " " + r.mask);
  }
  if (!r.quantized) return "<td>float32 <small>not quantized</small></td>";
  std::string axes = r.rounding;
  for (const std::string& part : {r.overflow, r.scale}) {
    if (!part.empty()) axes += (axes.empty() ? "" : " · ") + part;
  }
  if (!r.granularity.empty()) axes += " / " + r.granularity;
  if (r.granularity == "block" && !r.axis.empty()) axes += " along " + r.axis;
  if (!r.mask.empty()) axes += " · mask " + r.mask;
  return fmt::format("<td>{} <small>{}</small></td>", html_text(r.format), html_text(axes));
}

std::string change_cell(const ReportRow& r, Medium medium) {
  if (!r.is_baseline()) return share(medium, r.difference, r.row->metrics.difference_ci95, true);
  return medium == Medium::html ? html_number_cell(r.difference, kNone) : none(medium);
}

/// Resamples draw samples of several classes, and none of them differs in top-1.
bool top1_is_alike(const ReportRow& r) {
  const RowScore* const score = r.row->score("top1");
  return score && !none_differs(*score, r.row->point.eval_images.value_or(0)).empty();
}

std::string gate_cell(const ReportRow& r, Medium medium) {
  if (medium != Medium::html) return gate_words(r);
  const std::string verdict = gate_verdict(r);
  if (verdict.empty()) return html_text_cell("");
  std::string shown = html_text(gate_words(r));
  if (const std::size_t comma = shown.find(", "); comma != shown.npos)
    shown = shown.replace(comma, 2, "<small>") + "</small>";
  return html_verdict_cell(verdict == "pass"   ? Verdict::holds
                           : verdict == "fail" ? Verdict::fails
                                               : Verdict::undecided,
                           shown);
}

std::string sqnr_cell(const ReportRow& r, Medium medium) {
  if (medium == Medium::html) return html_measured_cell(r);
  if (r.not_finite && !r.sqnr_db) return "NaN";
  const std::string text = number(medium, r.sqnr_db, 1);
  const auto interval = r.sqnr_interval();
  return medium == Medium::terminal && interval
             ? text + fmt::format(" [{:.1f}, {:.1f}]", interval->first, interval->second)
             : text;
}

/// The mark of a prediction that fails.
std::string missed(Medium medium, bool fails) {
  return !fails ? "" : medium == Medium::terminal ? kMissed : " (fails)";
}

/// With the reason where the row gives one, and what it leaves out.
std::string predicted_cell(const ReportRow& r, Medium medium) {
  if (medium == Medium::html) return html_predicted_cell(r);
  const std::string text = number(medium, r.predicted_sqnr_db, 1) + missed(medium, r.sqnr_missed());
  if (medium == Medium::terminal) return text + (r.unit_ignored() ? "*" : "");
  if (!r.predicted_sqnr_db) return r.left_out.empty() ? "" : "- (" + r.left_out + ")";
  return text + (r.unit_ignored() ? " (unit left out)" : "");
}

std::string gained_cell(const ReportRow& r, Medium medium) {
  if (medium == Medium::html) return html_gained_cell(r);
  const std::string text = number(medium, r.gained_db, 1);
  return r.predicted_gained_db
             ? text + " (predicted " + number(medium, r.predicted_gained_db, 1) + ")"
             : text;
}

constexpr double kRoundedInRows = 1e-5;  // which have six digits

/// The figure that rows are judged by, as noise of random phase expects it, with its interval.
std::string expected_cell(const ReportRow& r, Medium medium) {
  const Measure& measure = *r.judged.measure;
  const JudgedFigure& j = r.judged;
  const bool fails = j.predicted && j.verdict() == Verdict::fails;
  if (medium == Medium::html) {
    std::string shown = html_figure(measure, j.predicted);
    if (j.predicted_low && j.predicted_high)
      shown += html_interval(html_figure(measure, j.predicted_low),
                             html_figure(measure, j.predicted_high));
    if (fails) shown += kFails;
    return html_number_cell(j.predicted, shown);
  }
  if (!j.predicted) return none(medium);
  const std::string text = figure_text(measure, j.predicted) + missed(medium, fails);
  if (!j.predicted_low || !j.predicted_high) return text;
  // An interval that ends where the figure does, at 0 or 100 %, has no half.
  const double low = *j.predicted_low, high = *j.predicted_high;
  const bool centred = std::fabs((high - *j.predicted) - (*j.predicted - low)) <=
                       kRoundedInRows * std::max(std::fabs(low), std::fabs(high));
  return medium == Medium::terminal && centred
             ? text + " +-" + figure_text(measure, (high - low) / 2)
             : text + " " + interval_text(measure, j.predicted_low, j.predicted_high);
}

/// Answers other than float32's, and the share that is expected.
std::string changed_cell(const ReportRow& r, Medium medium) {
  const Member<double>& changed = r.row->metrics.changed;
  const auto expected = found_at<&Row::predicted, &RowPrediction::accuracy, &RowAccuracy::changed,
                                 &RowExpected::value>(*r.row)
                            .value_or(Member<double>());
  if (medium == Medium::html) {
    std::string shown = html_share(changed, {}, {}, false);
    if (expected)
      shown += fmt::format(" <small>expected {}</small>", html_share(expected, {}, {}, false));
    return html_number_cell(changed, shown);
  }
  if (!changed || r.is_baseline()) return none(medium);
  const std::string text = percent_text(*changed);
  return expected ? text + " (expected " + percent_text(*expected) + ")" : text;
}

std::string notes_cell(const ReportRow& r, Medium medium) {
  std::vector<std::string> lines = not_finite_sentences(*r.row);
  lines.insert(lines.end(), r.row->notes.begin(), r.row->notes.end());
  const std::string text = joined(lines, "; ");
  return medium == Medium::html ? html_text_cell(text, " class=\"why\"") : text;
}

/// One column of the tables of rows. Media without a title do not have it.
struct Declared {
  const char* key;
  const char *terminal, *markdown, *html;  ///< titles
  bool numeric;
  bool (*has)(const ReportRow&);  ///< whether a row has something for it; null: always shown
  std::string (*cell)(const ReportRow&, Medium);
  Room room = Room::kept, shortened = Room::kept;  ///< ShownColumn
  std::string (*shorter)(const ReportRow&) = nullptr;

  const char* title(Medium medium) const {
    return medium == Medium::terminal ? terminal : medium == Medium::markdown ? markdown : html;
  }
};

/// The columns of measures and of scores stand where these keys do.
constexpr const char *kJudged = "judged", *kScores = "scores";

constexpr Declared kShown[] = {
    {"position", nullptr, "#", "#", true, nullptr,
     [](const ReportRow& r, Medium m) {
       return number(m, static_cast<double>(r.position + 1), 0);
     }},
    {"recipe", "recipe", "recipe", "Recipe", false,
     [](const ReportRow& r) { return !r.row->recipe_name.empty(); },
     [](const ReportRow& r, Medium m) {
       const std::string& name = r.row->recipe_name;
       return m == Medium::terminal && name.empty() ? "-" : words(m, name);
     }},
    {"weights", "weights", "weights", "Weights", false, nullptr,
     [](const ReportRow& r, Medium m) { return role_cell(r.weight, m); }, Room::formats,
     Room::conversions, [](const ReportRow& r) { return short_format(r.weight.format); }},
    {"activations", "activations", "activations", "Activations", false, nullptr,
     [](const ReportRow& r, Medium m) { return role_cell(r.activation, m); }, Room::formats,
     Room::conversions, [](const ReportRow& r) { return short_format(r.activation.format); }},
    {"other", "layers", "other rules", "Other rules", false,
     [](const ReportRow& r) { return !r.other.empty(); },
     [](const ReportRow& r, Medium m) { return words(m, r.other); }, Room::layers},
    {"settings", "settings", "settings", "Settings", false,
     [](const ReportRow& r) { return !r.settings.empty(); },
     [](const ReportRow& r, Medium m) { return words(m, r.settings); }, Room::settings},
    {"unit", "unit", "unit", "Unit", false, nullptr,
     [](const ReportRow& r, Medium m) { return words(m, r.unit); }, Room::unit, Room::unit_names,
     [](const ReportRow& r) { return short_unit(r.unit); }},
    {"bits_weight", "W bits", "bits W", "Bits W", true, nullptr,
     [](const ReportRow& r, Medium m) { return number(m, r.row->bits.weight, 2); }, Room::bits},
    {"bits_activation", "A bits", "bits A", "Bits A", true, nullptr,
     [](const ReportRow& r, Medium m) { return number(m, r.row->bits.activation, 2); }, Room::bits},
    {"perplexity", "perplexity", "perplexity", "Perplexity", true,
     [](const ReportRow& r) { return r.perplexity.has_value(); },
     [](const ReportRow& r, Medium m) {
       return m == Medium::terminal && r.perplexity ? decimal_text(*r.perplexity, 3)
                                                    : number(m, r.perplexity, 3);
     },
     Room::perplexity},
    {"top1", "top-1 %", "top-1, % (95 %)", "Top-1, %", true, nullptr,
     [](const ReportRow& r, Medium m) {
       return share(m, r.row->metrics.top1, r.row->metrics.ci95, false);
     },
     Room::top1},
    {"top1_ci95", "95 %", nullptr, nullptr, true, nullptr,
     [](const ReportRow& r, Medium) { return ends(r.row->metrics.ci95, "{:.2f}"); },
     Room::top1_interval},
    {"change", "change", "change, points (95 %, paired)", "Change, points", true, nullptr,
     change_cell, Room::top1},
    {"change_ci95", "95 %", nullptr, nullptr, true, nullptr,
     [](const ReportRow& r, Medium) {
       return r.is_baseline()    ? "-"
              : top1_is_alike(r) ? "none differs"
                                 : ends(r.row->metrics.difference_ci95, "{:+.2f}");
     },
     Room::top1},
    {"expected", "expected", "expected", "Expected", true,
     [](const ReportRow& r) { return r.judged.predicted.has_value(); }, expected_cell,
     Room::expected, Room::expected_interval,
     [](const ReportRow& r) {
       const std::string text = expected_cell(r, Medium::terminal);
       return text.substr(0, text.find(' '));
     }},
    {"changed", nullptr, "answers changed, %", "Answers changed, %", true,
     [](const ReportRow& r) { return r.row->metrics.changed && !r.is_baseline(); }, changed_cell},
    {"gate", "gate", "gate", "Gate", false,
     [](const ReportRow& r) { return !gate_verdict(r).empty(); }, gate_cell},
    {"sqnr", "SQNR dB", "SQNR, dB", "SQNR measured, dB", true, nullptr, sqnr_cell},
    {"predicted", "predicted", "predicted, dB", "SQNR predicted, dB", true,
     [](const ReportRow& r) { return !r.is_float32() && !r.row->turned_off(); }, predicted_cell,
     Room::predicted},
    {"gained", nullptr, "at best gain, dB", "SQNR at best gain, dB", true,
     [](const ReportRow& r) { return r.gained_db.has_value(); }, gained_cell},
    {"notes", nullptr, "notes", "Notes", false,
     [](const ReportRow& r) { return r.not_finite || !r.row->notes.empty(); }, notes_cell},
};

constexpr const char* kInHtml[] = {
    "position",    "recipe",          "weights", "activations", "other",     "settings", "unit",
    "bits_weight", "bits_activation", kJudged,   "perplexity",  kScores,     "top1",     "change",
    "expected",    "changed",         "gate",    "sqnr",        "predicted", "gained",   "notes"};
constexpr const char* kInMarkdown[] = {
    "position", "recipe",     "weights", "activations", "unit",   "bits_weight", "bits_activation",
    kJudged,    "perplexity", kScores,   "top1",        "change", "expected",    "changed",
    "sqnr",     "predicted",  "gate",    "gained",      "other",  "settings",    "notes"};
constexpr const char* kOnTerminal[] = {
    "recipe",      "weights",         "activations", "other",      "settings", "unit",
    "bits_weight", "bits_activation", kJudged,       "perplexity", "top1",     "top1_ci95",
    "change",      "change_ci95",     "expected",    "gate",       "sqnr",     "predicted"};

/// Changes are in the unit of the figure itself, also where a small loss is a share of float32's.
std::string change_title(const Measure& measure) {
  const std::string unit = measure.is_bits() ? "bits" : measure.relative ? "" : measure.unit;
  return unit.empty() || unit.starts_with("of ") ? "change" : "change, " + unit;
}

/// Figure and change of what rows are judged by, where that is not top-1: of HTML those of every
/// measure, else those of the measure of all rows. A row that is judged by another one has none.
void add_judged(std::vector<ShownColumn>& out, const std::vector<ReportRow>& records,
                Medium medium) {
  std::vector<const Measure*> measures = {&measure_of(records)};
  if (medium == Medium::html) {
    measures.clear();
    for (const ReportRow& r : records) {
      if (std::ranges::find(measures, r.judged.measure) == measures.end())
        measures.push_back(r.judged.measure);
    }
  }
  for (const Measure* const measure : measures) {
    if (measure->is_top1()) continue;
    const auto add = [&](const std::string& title, auto cell) {
      out.push_back({kJudged, title, true, [measure, medium, cell](const ReportRow& r) {
                       return r.judged.measure == measure ? cell(r, *measure) : none(medium);
                     }});
    };
    if (medium == Medium::html) {
      add(measure->title, [](const ReportRow& r, const Measure& m) {
        return html_number_cell(r.judged.value, html_figure(m, r.judged.value));
      });
      add("Change", [](const ReportRow& r, const Measure&) { return html_change_cell(r); });
    } else if (medium == Medium::markdown) {
      const auto figure = [](const std::optional<double>& x, const Measure& m) {
        const double shown = m.factor * x.value_or(0);
        return x ? fmt::format("{:.{}f}", shown,
                               m.factor == 100 ? m.digits : shown_decimals(shown, m.digits))
                 : "";
      };
      add(measure->words,
          [=](const ReportRow& r, const Measure& m) { return figure(r.judged.value, m); });
      add(change_title(*measure),
          [=](const ReportRow& r, const Measure& m) { return figure(r.judged.difference, m); });
    } else {
      add(!measure->is_bits()                 ? measure->title
          : measure->name == "bits_per_token" ? "bits/token"
                                              : "bits/char",
          [](const ReportRow& r, const Measure& m) { return figure_text(m, r.judged.value); });
      add("change", [](const ReportRow& r, const Measure& m) {
        return figure_text(m, r.judged.difference, true);
      });
      add("95 %", [](const ReportRow& r, const Measure& m) {
        const JudgedFigure& j = r.judged;
        const bool interval = j.difference_low && j.difference_high &&
                              *j.difference_low < *j.difference_high && !r.is_baseline();
        return interval ? interval_text(m, j.difference_low, j.difference_high, true) : "-";
      });
    }
  }
}

void add_scores(std::vector<ShownColumn>& out, const std::vector<ReportRow>& records,
                Medium medium) {
  for (const std::string& name : score_columns(records)) {
    out.push_back({name, medium == Medium::html ? name : name + " (95 %)", true,
                   [name, medium](const ReportRow& r) {
                     const std::string text = score_text(r, name);
                     if (medium != Medium::html) return text;
                     const RowScore* const score = r.row->score(name);
                     return html_number_cell(score ? score->value : Member<double>(), text);
                   }});
  }
}

/// Whether the table has the column, beside what Declared::has says.
bool is_shown(const Declared& column, const std::vector<ReportRow>& records, Medium medium) {
  const std::string_view key = column.key;
  if (column.has != nullptr && !(key == "other" && medium == Medium::markdown) &&
      std::ranges::none_of(records, column.has))
    return false;
  if (medium != Medium::terminal) return true;
  if (key == "recipe") return records.size() > 1;
  return !(key.starts_with("top1") || key.starts_with("change")) || measure_of(records).is_top1() ||
         std::ranges::any_of(records,
                             [](const ReportRow& r) { return r.row->metrics.top1.has_value(); });
}

/// Names stand for formats; top-1 is kept where rows are judged by it.
Room room_of(const Declared& column, const std::vector<ReportRow>& records) {
  const bool by_top1 = measure_of(records).is_top1();
  switch (column.room) {
    case Room::formats:
      return records.size() > 1 &&
                     std::ranges::all_of(
                         records, [](const ReportRow& r) { return !r.row->recipe_name.empty(); })
                 ? Room::formats
                 : Room::kept;
    case Room::top1:
      return by_top1 ? Room::kept : Room::top1;
    case Room::top1_interval:
      return by_top1 ? Room::top1_interval : Room::top1;
    default:
      return column.room;
  }
}

}  // namespace

ReportCell cell_of(const std::string& text) {
  return text.empty() ? ReportCell() : ReportCell(text);
}
ReportCell cell_of(const std::optional<double>& number) {
  return number ? ReportCell(*number) : ReportCell();
}
ReportCell cell_of(const Member<std::int64_t>& count) {
  return count ? ReportCell(static_cast<double>(*count)) : ReportCell();
}
ReportCell cell_of(const Member<Verdict>& verdict) {
  return verdict ? cell_of(std::string(to_string(*verdict))) : ReportCell();
}
ReportCell cell_of(const Member<bool>& flag) {
  return flag ? ReportCell(*flag ? "true" : "false") : ReportCell();
}

std::string cell_text(const ReportCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

const std::vector<Column>& row_columns() {
  using Interval = std::pair<double, double>;
  static const std::vector<Column> columns = {
      of_row<&Row::key>(
          "key", "digest of the point: the same key is the same configuration, network and data"),
      of<&ReportRow::name>("name", "name of the row, unique in the folder"),
      of_row<&Row::recipe_name>("recipe", "name of the recipe, where it has one"),
      of_row<&Row::point, &RowPoint::net>("net", "network"),
      of_row<&Row::point, &RowPoint::data>("data", "data set"),
      of_row<&Row::point, &RowPoint::eval_images>("eval_images", "samples asked for"),
      of<&ReportRow::seed>("seed", "seed of rows of earlier programs"),
      of_row<&Row::point, &RowPoint::weights>("weights_digest", "digest of the network's weights"),
      of<&ReportRow::weight, &ReportRole::format>("weight_format", "format of weights"),
      of<&ReportRow::weight, &ReportRole::rounding>("weight_rounding", "rounding of weights"),
      of<&ReportRow::weight, &ReportRole::overflow>("weight_overflow", "overflow of weights"),
      of<&ReportRow::weight, &ReportRole::scale>("weight_scale", "scale rule of weights"),
      of<&ReportRow::weight, &ReportRole::granularity>("weight_granularity",
                                                       "what shares a scale, of weights"),
      of<&ReportRow::weight, &ReportRole::axis>("weight_axis", "axis of blocks of weights"),
      of<&ReportRow::weight, &ReportRole::mask>("weight_mask", "mask of weights"),
      of<&ReportRow::activation, &ReportRole::format>("activation_format", "format of activations"),
      of<&ReportRow::activation, &ReportRole::rounding>("activation_rounding",
                                                        "rounding of activations"),
      of<&ReportRow::activation, &ReportRole::overflow>("activation_overflow",
                                                        "overflow of activations"),
      of<&ReportRow::activation, &ReportRole::scale>("activation_scale",
                                                     "scale rule of activations"),
      of<&ReportRow::activation, &ReportRole::granularity>("activation_granularity",
                                                           "what shares a scale, of activations"),
      of<&ReportRow::activation, &ReportRole::axis>("activation_axis",
                                                    "axis of blocks of activations"),
      of<&ReportRow::activation, &ReportRole::mask>("activation_mask", "mask of activations"),
      of<&ReportRow::unit>("unit", "unit of the forward products"),
      of<&ReportRow::dgrad_unit>("dgrad_unit", "unit of the products of input gradients"),
      of<&ReportRow::wgrad_unit>("wgrad_unit", "unit of the products of weight gradients"),
      of<&ReportRow::other>("other", "further quantized roles and rules of layers, in words"),
      of<&ReportRow::settings>("settings", "what else varies over the rows, in words"),
      of<&ReportRow::judged, &JudgedFigure::measure, &Measure::name>(
          "judged_by", "the figure by which rows are compared (docs/data.md)"),
      of_row<&Row::bits, &RowBits::weight>("bits_weight",
                                           "effective stored bits of a parameter, mean"),
      of_row<&Row::bits, &RowBits::product_weight>("bits_product_weight",
                                                   "those of the weights that products read"),
      of_row<&Row::bits, &RowBits::activation>("bits_activation",
                                               "effective stored bits of an activation, mean"),
      metric<&RowMetrics::top1>("top1", "share of right answers"),
      metric<&RowMetrics::n>("n", "samples of top1"),
      metric<&RowMetrics::ci95, &Ends::low>("ci95_low",
                                            "95 % interval of top1 (Wilson), lower end"),
      metric<&RowMetrics::ci95, &Ends::high>("ci95_high", "upper end"),
      metric<&RowMetrics::loss>("loss", "mean cross-entropy, nats"),
      metric<&RowMetrics::bits_per_character>("bits_per_character", "of texts"),
      of<&ReportRow::perplexity>("perplexity", "of texts"),
      metric<&RowMetrics::baseline_bits_per_character>("baseline_bits_per_character", "of float32"),
      metric<&RowMetrics::baseline_top1>("baseline_top1", "top1 of float32 on the same samples"),
      of<&ReportRow::difference>("difference", "top1 less baseline_top1, paired by sample"),
      metric<&RowMetrics::difference_ci95, &Ends::low>("difference_ci95_low",
                                                       "its 95 % interval, lower end"),
      metric<&RowMetrics::difference_ci95, &Ends::high>("difference_ci95_high", "upper end"),
      of<&ReportRow::sqnr_db>("sqnr_db", "SQNR of the network's output, dB"),
      of<&ReportRow::sqnr_error_db>("sqnr_error_db", "its standard error, dB"),
      of<&ReportRow::sqnr_interval, &Interval::first>("sqnr_ci95_low",
                                                      "its 95 % interval, lower end, dB"),
      of<&ReportRow::sqnr_interval, &Interval::second>("sqnr_ci95_high", "upper end, dB"),
      metric<&RowMetrics::sqnr_without_mean_db>(
          "sqnr_without_mean_db", "SQNR of the output beside its mean over samples, dB"),
      of<&ReportRow::gained_db>("sqnr_gained_db",
                                "SQNR at the best common gain of the outputs, dB"),
      metric<&RowMetrics::gain>("gain", "that gain"),
      of<&ReportRow::predicted_sqnr_db>("predicted_sqnr_db", "predicted SQNR of the output, dB"),
      of<&ReportRow::predicted_gained_db>("predicted_sqnr_gained_db",
                                          "predicted SQNR at the best gain, dB"),
      of_row<&Row::predicted, &RowPrediction::gain>("predicted_gain", "predicted gain"),
      metric<&RowMetrics::changed>("changed", "share of answers other than float32's"),
      expected<&RowAccuracy::top1, &RowExpected::value>("predicted_top1",
                                                        "expected top1, by noise of random phase"),
      expected<&RowAccuracy::top1, &RowExpected::ci95, &Ends::low>(
          "predicted_top1_ci95_low", "where the measured one is at 95 %, lower end"),
      expected<&RowAccuracy::top1, &RowExpected::ci95, &Ends::high>("predicted_top1_ci95_high",
                                                                    "upper end"),
      expected<&RowAccuracy::changed, &RowExpected::value>("predicted_changed",
                                                           "expected share of changed answers"),
      expected<&RowAccuracy::loss, &RowExpected::value>("predicted_loss", "expected loss, nats"),
      expected<&RowAccuracy::samples>("predicted_samples", "samples of what is expected"),
      of<&ReportRow::left_out>("left_out", "why no SQNR is predicted"),
      of<&ReportRow::not_finite_words>("not_finite", "where numbers are NaN or infinite, in words"),
      of<&ReportRow::all_notes>("notes", "notes of the row"),
      of_row<&Row::version>("version", "numerics version"),
      of_gate<&RowGate::verdict>("gate", "pass, fail or undecided"),
      of_gate<&RowGate::target>("gate_target", "what the gate asked for"),
      of_gate<&RowGate::required>("gate_required", "the figure that it requires"),
      of_gate<&RowGate::margin>("gate_margin", "measured less required"),
      of_gate<&RowGate::margin_ci99, &Ends::low>("gate_margin_ci99_low",
                                                 "99 % interval of the margin, lower end"),
      of_gate<&RowGate::margin_ci99, &Ends::high>("gate_margin_ci99_high", "upper end"),
      of_gate<&RowGate::images_needed>("gate_images_needed",
                                       "samples that would decide, if the shares stay"),
  };
  return columns;
}

std::vector<Column> score_columns_of(const std::string& name) {
  using S = RowScore;
  constexpr const char *kLow = "its 95 % interval, lower end", *kHigh = "upper end";
  std::vector<Column> columns;
  for (const Field<S>& part :
       {field<S, &S::value>("", "the score (docs/data.md)"),
        field<S, &S::ci95, &Ends::low>("_ci95_low", kLow),
        field<S, &S::ci95, &Ends::high>("_ci95_high", kHigh),
        field<S, &S::baseline>("_baseline", "float32's, on the same samples"),
        field<S, &S::difference>("_difference", "the score less float32's, paired"),
        field<S, &S::difference_ci95, &Ends::low>("_difference_ci95_low", kLow),
        field<S, &S::difference_ci95, &Ends::high>("_difference_ci95_high", kHigh),
        field<S, &S::predicted>("_predicted", "what is expected"),
        field<S, &S::predicted_ci95, &Ends::low>("_predicted_ci95_low", kLow),
        field<S, &S::predicted_ci95, &Ends::high>("_predicted_ci95_high", kHigh)})
    columns.push_back({"score_" + name + part.name, part.is_text,
                       [name, value = part.value](const ReportRow& r) {
                         const RowScore* const score = r.row->score(name);
                         return score ? value(*score) : ReportCell();
                       },
                       part.meaning});
  return columns;
}

std::vector<Column> exported_columns(const std::vector<ReportRow>& records) {
  std::vector<Column> columns = row_columns();
  for (const std::string& name : score_columns(records))
    std::ranges::move(score_columns_of(name), std::back_inserter(columns));
  return columns;
}

std::string role_text(const ReportRole& role) {
  std::string out = role.format;
  for (const std::string& part : {role.rounding, role.overflow}) {
    if (!part.empty()) out += " " + part;
  }
  if (!role.scale.empty()) out += " " + role.scale + "/" + role.granularity;
  return role.mask.empty() ? out : out + " " + role.mask;
}

std::vector<ShownColumn> shown_columns(const std::vector<ReportRow>& records, Medium medium) {
  std::vector<ShownColumn> out;
  const auto add = [&](std::string_view key) {
    if (key == kJudged) return add_judged(out, records, medium);
    if (key == kScores) return add_scores(out, records, medium);
    const Declared& column =
        *std::ranges::find(kShown, key, [](const Declared& c) { return std::string_view(c.key); });
    if (!is_shown(column, records, medium)) return;
    std::string title = column.title(medium);
    // Beside that of the test samples.
    if (key == "sqnr" && medium == Medium::terminal && measure_of(records).name == "sqnr")
      title += " (reference)";
    out.push_back({column.key, std::move(title), column.numeric,
                   [cell = column.cell, medium](const ReportRow& r) { return cell(r, medium); },
                   room_of(column, records), column.shortened, column.shorter});
  };
  if (medium == Medium::html) std::ranges::for_each(kInHtml, add);
  if (medium == Medium::markdown) std::ranges::for_each(kInMarkdown, add);
  if (medium == Medium::terminal) std::ranges::for_each(kOnTerminal, add);
  return out;
}

void write_csv(const ReportInput& input, const std::string& path) {
  std::string out;
  const std::vector<ReportRow> records = report_rows(*input.rows);
  const std::vector<Column> columns = exported_columns(records);
  for (const Column& column : columns) out += (out.empty() ? "" : ",") + csv_field(column.name);
  out += "\r\n";
  for (const ReportRow& record : records) {
    std::string line;
    bool first = true;
    for (const Column& column : columns) {
      if (!first) line += ',';
      first = false;
      const std::string text = cell_text(column.value(record));
      line += csv_field(column.is_text ? spreadsheet_text(text) : text);
    }
    out += line + "\r\n";
  }
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
