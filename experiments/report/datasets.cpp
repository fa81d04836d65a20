#include "experiments/report/datasets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "emu/stats/interval.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"

namespace numemu::experiments {
namespace {

/// Beyond 10 bits the lines of a grid touch each other on any screen.
constexpr int kDrawableBits = 10;

bool drawable(const Json& tensor) {
  const auto low = json_number(tensor, {"low"}), high = json_number(tensor, {"high"});
  const auto absmax = json_number(tensor, {"absmax"});
  const Json* counts = json_at(tensor, {"counts"});
  if (!low || !high || !absmax || !(*low < *high) || !(*absmax > 0)) return false;
  if (!counts || !counts->is_array() || counts->empty()) return false;
  return std::all_of(counts->begin(), counts->end(), [](const Json& c) { return c.is_number(); });
}

constexpr const char* kNotFiniteSeries = "NaN or infinite (lower edge)";
constexpr double kNoSignal = -999;  ///< dB that sort and colour a cell whose output is not finite

Json optional_json(const std::optional<double>& x, double factor = 1) {
  return x ? Json(*x * factor) : Json();
}

Json optional_json(const std::optional<int>& x) { return x ? Json(*x) : Json(); }

/// Width of a stored element; formats without a table row use their effective bits.
Json element_bits(const ReportRole& role, const std::optional<double>& effective) {
  if (role.bits) return *role.bits;
  return effective ? Json(std::lround(*effective)) : Json();
}

Json point_json(const ReportRow& r) {
  const bool same = r.weight == r.activation;
  // The figures show what the row is judged by, of a text not the share of right characters.
  const Measure& measure = *r.judged.measure;
  const bool accuracy = measure.is_top1();
  const auto percent = [&](const std::optional<double>& x, double factor = 100) {
    return accuracy ? optional_json(x, factor) : Json();
  };
  const auto other = [&](const std::optional<double>& x) {
    return accuracy ? Json() : optional_json(x, measure.factor);
  };
  const RowBits& bits = r.row->bits;
  const RowMetrics& m = r.row->metrics;
  const Ends top1 = m.ci95.value_or(Ends()), change = m.difference_ci95.value_or(Ends());
  // The maps of widths show what all layers have, and points lost.
  const bool mapped = accuracy && r.only_in.empty() && r.overrides.empty();
  const bool one_format = mapped && r.weight.format == r.activation.format;
  return {{"i", r.position},
          {"label", r.label},
          {"rules", r.other},
          {"settings", r.settings},
          {"family", r.family()},
          {"pairing",
           r.weight.format == r.activation.format && r.overrides.empty() ? "W = A" : "W ≠ A"},
          {"unit", r.unit},
          {"weight", r.weight.format},
          {"activation", r.activation.format},
          {"axes", r.weight.rounding + ", " + r.weight.overflow + ", " + r.weight.scale +
                       (same ? "" : " (weights)")},
          {"bits", optional_json(r.mean_bits())},
          {"bits_weight", optional_json(bits.weight)},
          {"bits_activation", optional_json(bits.activation)},
          {"w", mapped ? element_bits(r.weight, bits.weight) : Json()},
          {"a", mapped ? element_bits(r.activation, bits.activation) : Json()},
          {"e", one_format ? optional_json(r.weight.exponent_bits) : Json()},
          {"m", one_format ? optional_json(r.weight.mantissa_bits) : Json()},
          {"top1", percent(m.top1)},
          {"low", percent(top1.low)},
          {"high", percent(top1.high)},
          {"change", percent(r.difference)},
          {"change_low", percent(change.low)},
          {"change_high", percent(change.high)},
          {"lost", percent(r.difference, -100)},
          {"figure", other(r.judged.value)},
          {"figure_change", other(r.judged.difference)},
          {"figure_loss", accuracy ? Json() : optional_json(r.judged.loss())},
          {"perplexity", optional_json(r.perplexity)},
          {"sqnr", optional_json(r.sqnr_db)},
          {"not_finite", r.not_finite && !r.sqnr_db ? Json(r.not_finite_words()) : Json()},
          {"predicted", optional_json(r.predicted_sqnr_db)}};
}

/// Without `measured` the numbers are not finite: the point gets its place on the lower edge in
/// place_not_finite.
void add_prediction(Json& out, const ReportRow& r, const char* panel, const char* series,
                    const std::string& where, const std::optional<double>& predicted,
                    const std::optional<double>& measured, bool not_finite = false) {
  if (!predicted || (!measured && !not_finite)) return;
  out.push_back({{"panel", panel},
                 {"series", measured ? series : kNotFiniteSeries},
                 {"where", where},
                 {"label", r.label},
                 {"unit", r.unit},
                 {"predicted", *predicted},
                 {"measured", optional_json(measured)},
                 {"shown", measured ? fmt::format("{:.2f} dB", *measured) : "NaN or infinite"}});
}

/// Below every measured number.
void place_not_finite(Json& predictions) {
  double low = 0;
  for (const Json& p : predictions) {
    for (const char* key : {"predicted", "measured"})
      low = std::min(low, json_number(p, {key}).value_or(low));
  }
  for (Json& p : predictions) {
    if (p["measured"].is_null()) p["measured"] = low - 5;
  }
}

bool is_layer_not_finite(const ReportRow& r, const RowLayer& layer) {
  return !layer.sqnr_db && not_finite_results(*r.row, layer.name) > 0;
}

void add_predictions(Json& out, const ReportRow& r) {
  for (const RowTensor& t : r.row->predicted.tensors) {
    const std::string where = t.layer + " " + t.role + ", " + t.format;
    add_prediction(out, r, "Tensors", "empirical", where, t.empirical_db, t.measured_db);
    if (t.accepted())
      add_prediction(out, r, "Tensors", "fitted", where, t.fitted->db, t.measured_db);
  }
  for (const RowLayer& layer : r.row->layers)
    add_prediction(out, r, "Layers", "layer", layer.name, layer.predicted_db, layer.sqnr_db,
                   is_layer_not_finite(r, layer));
  add_prediction(out, r, "Network output", "output", "network output", r.predicted_sqnr_db,
                 r.sqnr_db, r.not_finite);
}

void add_layers(Json& out, const ReportRow& r) {
  for (const RowLayer& layer : r.row->layers) {
    for (const char* kind : {"measured", "predicted"}) {
      const bool measured = kind[0] == 'm', lost = measured && is_layer_not_finite(r, layer);
      const Member<double>& db = measured ? layer.sqnr_db : layer.predicted_db;
      if (!db && !lost) continue;
      out.push_back({{"i", r.position},
                     {"layer", layer.name},
                     {"gemm", layer.gemm},
                     {"kind", kind},
                     {"db", db.value_or(0)},
                     {"shown", db ? fmt::format("{:.1f}", *db) : "NaN or infinite"},
                     {"overflow", optional_json(layer.overflow, 100)},
                     {"underflow", optional_json(layer.underflow, 100)}});
    }
  }
}

/// What rows are judged by, expected and measured.
void add_expected(Json& out, const ReportRow& r) {
  const JudgedFigure& j = r.judged;
  if (!j.value || !j.predicted || r.is_baseline()) return;
  const double factor = j.measure->factor;
  out.push_back({{"label", r.label},
                 {"unit", r.unit},
                 {"family", r.family()},
                 {"predicted", factor * *j.predicted},
                 {"low", factor * j.predicted_low.value_or(*j.predicted)},
                 {"high", factor * j.predicted_high.value_or(*j.predicted)},
                 {"measured", factor * *j.value},
                 {"verdict", to_string(j.verdict())}});
}

/// A cell of layer by format, for rows that quantize one layer alone.
void add_sensitivity(Json& out, const ReportRow& r) {
  if (r.only_in.empty()) return;
  const Ends change = r.row->metrics.difference_ci95.value_or(Ends());
  out.push_back(
      {{"layer", layer_words(r.only_in)},
       {"format", r.formats() + r.label.substr(r.short_label().size())},
       {"unit", r.unit},
       {"sqnr", optional_json(r.sqnr_db)},
       {"noise", r.sqnr_db || r.not_finite ? Json(r.sqnr_db.value_or(kNoSignal)) : Json()},
       {"shown", r.sqnr_db      ? fmt::format("{:.1f}", *r.sqnr_db)
                 : r.not_finite ? "NaN"
                                : ""},
       {"predicted", optional_json(r.predicted_sqnr_db)},
       {"lost", r.judged.measure->is_top1() ? optional_json(r.difference, -100) : Json()},
       {"low", optional_json(change.low, 100)},
       {"high", optional_json(change.high, 100)},
       {"bits_added", r.judged.measure->is_bits() ? optional_json(r.judged.difference) : Json()}});
}

/// Every row contains its float32 baseline, even if no row is the baseline.
void add_told_baseline(Json& out, const std::vector<ReportRow>& records) {
  for (const ReportRow& r : records) {
    if (!r.judged.measure->is_top1()) {
      if (!r.judged.baseline) continue;
      out.push_back({{"figure", r.judged.measure->factor * *r.judged.baseline}});
      return;
    }
    const Member<double>& top1 = r.row->metrics.baseline_top1;
    const std::int64_t n = r.row->metrics.n.value_or(0);
    if (!top1 || n < 1) continue;
    const stats::Interval interval = stats::wilson(std::llround(*top1 * static_cast<double>(n)), n);
    out.push_back(
        {{"top1", *top1 * 100}, {"low", 100 * interval.low}, {"high", 100 * interval.high}});
    return;
  }
}

Json diagonal_of(const Json& predictions) {
  if (predictions.empty()) return Json::array();
  double low = INFINITY, high = -INFINITY;
  for (const Json& p : predictions) {
    for (const char* key : {"predicted", "measured"}) {
      low = std::min(low, p[key].get<double>());
      high = std::max(high, p[key].get<double>());
    }
  }
  return Json::array({{{"low", low}, {"high", high}}});
}

}  // namespace

SweptFormat swept_format(const Format& format) {
  return {std::string(format.name), format.kind == Kind::floating ? "float" : "int", format.bits,
          finite_values(format), largest_value(format)};
}

std::vector<SweptFormat> swept_formats(const std::vector<ReportRow>& records) {
  std::set<std::string> names;
  for (const ReportRow& r : records) {
    for (const ReportRole* role :
         {&r.weight, &r.activation, &r.layer_weight, &r.layer_activation}) {
      if (role->quantized && role->bits && *role->bits <= kDrawableBits)
        names.insert(role->element.empty() ? role->format : role->element);
    }
  }
  std::vector<SweptFormat> out;
  for (const std::string& name : names) {
    out.push_back(swept_format(find_format(name)));
    out.back().name = name;
  }
  std::sort(out.begin(), out.end(), [](const SweptFormat& a, const SweptFormat& b) {
    return std::tie(a.family, a.bits, a.name) < std::tie(b.family, b.bits, b.name);
  });
  return out;
}

Json grid_records(const std::vector<SweptFormat>& formats) {
  Json out = Json::array();
  for (const SweptFormat& f : formats) {
    out.push_back({{"format", f.name},
                   {"family", f.family},
                   {"bits", f.bits},
                   {"values", f.values},
                   {"largest", f.largest}});
  }
  return out;
}

Json step_records(const std::vector<SweptFormat>& formats) {
  Json out = Json::array();
  for (const SweptFormat& f : formats) {
    for (std::size_t i = 1; i < f.values.size(); ++i) {
      const double value = f.values[i];
      if (value <= 0) continue;
      const double step =
          i + 1 < f.values.size() ? f.values[i + 1] - value : value - f.values[i - 1];
      out.push_back({{"format", short_format(f.name)},
                     {"family", f.family},
                     {"bits", f.bits},
                     {"value", value / f.largest},
                     {"step", 100 * step / value}});
    }
  }
  return out;
}

Json valid_histograms(const Json& tensors) {
  Json out = Json::array();
  if (!tensors.is_array()) return out;
  for (const Json& tensor : tensors) {
    if (drawable(tensor)) out.push_back(tensor);
  }
  return out;
}

std::vector<std::string> swept_units(const std::vector<ReportRow>& records) {
  std::vector<std::string> out;
  for (const ReportRow& r : records) {
    if (r.quantized() && std::find(out.begin(), out.end(), r.unit) == out.end())
      out.push_back(r.unit);
  }
  return out;
}

Json chart_datasets(const std::vector<ReportRow>& records, const Json* tensors) {
  Json points = Json::array(), baseline = Json::array(), predictions = Json::array(),
       expected = Json::array(), layers = Json::array(), sensitivity = Json::array();
  for (const ReportRow& r : records) {
    add_sensitivity(sensitivity, r);
    add_layers(layers, r);
    add_predictions(predictions, r);
    add_expected(expected, r);
    if (r.quantized()) {
      points.push_back(point_json(r));
    } else if (!r.judged.measure->is_top1()) {
      if (r.judged.value)
        baseline.push_back({{"figure", r.judged.measure->factor * *r.judged.value}});
    } else if (const Member<double>& top1 = r.row->metrics.top1) {
      const Ends ends = r.row->metrics.ci95.value_or(Ends());
      baseline.push_back({{"top1", *top1 * 100},
                          {"low", optional_json(ends.low, 100)},
                          {"high", optional_json(ends.high, 100)}});
    }
  }
  place_not_finite(predictions);
  if (baseline.empty()) add_told_baseline(baseline, records);
  const std::vector<SweptFormat> formats = swept_formats(records);
  const Json* histograms = tensors ? json_at(*tensors, {"tensors"}) : nullptr;
  Json out;
  out["points"] = std::move(points);
  out["baseline"] = std::move(baseline);
  out["diagonal"] = diagonal_of(predictions);
  out["predictions"] = std::move(predictions);
  out["expected_diagonal"] = diagonal_of(expected);
  out["expected"] = std::move(expected);
  out["layers"] = std::move(layers);
  out["sensitivity"] = std::move(sensitivity);
  out["steps"] = step_records(formats);
  out["grids"] = grid_records(formats);
  out["tensors"] = histograms ? valid_histograms(*histograms) : Json::array();
  return out;
}

}  // namespace numemu::experiments
