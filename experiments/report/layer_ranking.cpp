#include "experiments/report/layer_ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "emu/stats/interval.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/joined.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

const char* const kAsItIs = "the recipe as it is";

/// A row that changes one layer, and the row without that change (null: float32).
struct Change {
  const ReportRow* record = nullptr;
  const ReportRow* base = nullptr;
  std::string layer, format;
  bool wide = false;
};

/// NaN and infinite outputs as a fraction of all, on the test samples or else the calibration's.
double lost_share(const ReportRow& r) {
  const LostNumbers* const lost = r.row->not_finite ? r.row->not_finite->counted() : nullptr;
  if (!lost) return 0;
  return static_cast<double>(lost->outputs.lost()) /
         static_cast<double>(std::max<std::int64_t>(1, lost->outputs.of));
}

/// Smaller is worse. Of layers that lose numbers, that of a loss which is no number is worst; of a
/// tuned network accuracy has no say, which compares with another network.
std::tuple<bool, double, double, double> order_of(const ReportRow& r) {
  if (!loses_numbers(r)) return {true, 0, 0, r.sqnr_db.value_or(HUGE_VAL)};
  return {false, r.is_tuned() ? 0 : -r.judged.loss().value_or(HUGE_VAL), -lost_share(r), 0};
}

bool is_all(const RankedLayer& layer) { return layer.name == layer_words("*"); }

const Json* layer_rules_of(const ReportRow& r) {
  const Json* rules = r.row ? json_at(r.row->point.recipe, {"layers"}) : nullptr;
  return rules && rules->is_array() ? rules : nullptr;
}

/// "int4", "int4 / int8", "int4 weights": what a rule of `layers` stores a layer in; "" if nothing.
std::string rule_formats(const Json& rule) {
  const auto format = [&](const char* role) -> std::string {
    const Json* found = json_at(rule, {"roles", role});
    if (!found) return "";
    const std::string name = found->is_object() ? json_text(*found, {"format"}) : "";
    return name.empty() ? "float32" : short_format(name);
  };
  const std::string w = format("weight"), a = format("activation");
  if (w.empty()) return a.empty() ? "" : a + " activations";
  if (a.empty()) return w + " weights";
  return w == a ? w : w + " / " + a;
}

/// Rows whose recipe is that of one other row and one rule of `layers` more; empty where those
/// other rows are several.
std::vector<Change> changes_of_recipe(const std::vector<ReportRow>& records) {
  std::map<std::string, const ReportRow*> whole;
  for (const ReportRow& r : records) {
    if (layer_rules_of(r)) whole.emplace(point_json(*r.row).dump(-1, Json::NotUtf8::replace), &r);
  }
  std::vector<Change> out;
  for (const ReportRow& r : records) {
    const Json* rules = layer_rules_of(r);
    if (!rules || rules->empty() || !r.only_in.empty()) continue;
    const Json& rule = rules->back();
    Json point = point_json(*r.row);
    point["recipe"]["layers"].erase(rules->size() - 1);
    const auto base = whole.find(point.dump(-1, Json::NotUtf8::replace));
    const std::string format = rule_formats(rule);
    if (base == whole.end() || format.empty()) continue;
    if (!out.empty() && out.front().base != base->second) return {};
    out.push_back({&r, base->second, json_text(rule, {"match"}), format,
                   format.starts_with("float32") && format.find('/') == format.npos});
  }
  return out;
}

std::vector<Change> changes_of(const std::vector<ReportRow>& records) {
  std::vector<Change> out = changes_of_recipe(records);
  if (out.size() > 1) return out;
  out.clear();
  for (const ReportRow& r : records) {
    if (!r.only_in.empty()) out.push_back({&r, nullptr, r.only_in, r.formats(), false});
  }
  return out;
}

/// None of a tuned network, whose accuracy compares with another one than its SQNR.
std::string loss_words(const ReportRow& r, const ReportRow* base) {
  const Measure& measure = *r.judged.measure;
  if (!r.judged.difference || r.is_tuned()) return "";
  const bool share = measure.relative && r.judged.baseline && *r.judged.baseline != 0;
  const double change = share ? 100 * *r.judged.difference / std::abs(*r.judged.baseline)
                        : measure.factor == 100 ? shown_percent(*r.judged.difference)
                                                : measure.factor * *r.judged.difference;
  // Points of what, where they are not those of top-1.
  const std::string unit = measure.relative && !share ? ""
                           : measure.factor == 100 && !measure.is_top1()
                               ? fmt::format("{} of {}", measure.unit, measure.words)
                               : measure.unit;
  std::string out = fmt::format(", {:+.{}f} {}", change,
                                share                   ? 2
                                : measure.factor == 100 ? measure.digits
                                                        : shown_decimals(change, measure.digits),
                                unit);
  if (share) out += (change < 0) == measure.falls ? " (better)" : " (worse)";
  if (base && measure.is_top1() && base->difference)
    out += fmt::format(" ({})", percent_text(*r.difference - *base->difference, "{:+.2f}"));
  return out;
}

/// "14.1 dB (-2.0), -0.42 points (-0.20)": in brackets the change from `base`, if there is one.
std::string effect(const ReportRow& r, const ReportRow* base = nullptr) {
  if (loses_numbers(r)) return "NaN or infinite outputs" + loss_words(r, base);
  if (!r.sqnr_db) return "no noise" + loss_words(r, base);
  std::string out = fmt::format("{:.1f} dB", *r.sqnr_db);
  if (base && base->sqnr_db) out += fmt::format(" ({:+.1f})", *r.sqnr_db - *base->sqnr_db);
  return out + loss_words(r, base);
}

/// Whether the 95 % intervals of two measured SQNRs leave open which one is lower.
bool too_close(const ReportRow& a, const ReportRow& b) {
  if (loses_numbers(a) || loses_numbers(b) || !a.sqnr_db || !b.sqnr_db) return false;
  if (!a.sqnr_error_db || !b.sqnr_error_db) return false;
  return std::abs(*a.sqnr_db - *b.sqnr_db) <=
         stats::kNormal95 * portable::hypot(*a.sqnr_error_db, *b.sqnr_error_db);
}

std::string sentence(const LayerRanking& ranking, std::size_t c) {
  const RankedLayer* first = nullptr;
  const ReportRow* all = nullptr;
  for (const RankedLayer& layer : ranking.layers) {
    const ReportRow* cell = layer.cells[c];
    if (cell && is_all(layer)) all = cell;
    if (cell && !is_all(layer) && (!first || comes_first(*cell, *first->cells[c], ranking.wide[c])))
      first = &layer;
  }
  if (!first) return "";
  const ReportRow& lead = *first->cells[c];
  const bool lost = loses_numbers(lead) && !ranking.wide[c];
  std::vector<std::string> close, also;
  for (const RankedLayer& layer : ranking.layers) {
    const ReportRow* cell = layer.cells[c];
    if (!cell || &layer == first || is_all(layer)) continue;
    if (too_close(lead, *cell)) close.push_back(layer.name);
    if (loses_numbers(*cell)) also.push_back(layer.name + loss_words(*cell, ranking.base));
  }
  if (ranking.base && too_close(lead, *ranking.base)) close.emplace_back(kAsItIs);
  std::string out = fmt::format("{}{}: {}: {} ({})", ranking.formats[c],
                                ranking.unit.empty() ? "" : " on " + ranking.unit,
                                lost && !lead.is_tuned() ? "largest loss"
                                : ranking.wide[c]        ? "highest SQNR"
                                                         : "lowest SQNR",
                                first->name, effect(lead, ranking.base));
  if (!close.empty()) out += fmt::format(", not distinguishable from {}", joined(close, ", "));
  if (lost && !also.empty()) out += fmt::format("; also NaN or infinite: {}", joined(also, "; "));
  if (const auto interval = lead.judged.loss_interval();
      !lead.is_tuned() && interval && interval->first < interval->second && interval->first <= 0 &&
      interval->second >= 0)
    out += fmt::format("; its {} {} not distinguishable from float32's", lead.judged.measure->words,
                       lead.judged.measure->is_bits() ? "are" : "is");
  if (ranking.base) out += fmt::format("; {}: {}", kAsItIs, effect(*ranking.base));
  if (all) out += fmt::format("; all layers: {}", effect(*all, ranking.base));
  if (lead.is_tuned()) out += "; SQNR compares with the tuned weights in float32";
  return out + ".";
}

bool all_wide(const LayerRanking& ranking) {
  return !ranking.wide.empty() &&
         std::all_of(ranking.wide.begin(), ranking.wide.end(), [](bool wide) { return wide; });
}

}  // namespace

bool loses_numbers(const ReportRow& r) { return r.not_finite && (!r.sqnr_db || lost_share(r) > 0); }

bool comes_first(const ReportRow& a, const ReportRow& b, bool wide) {
  return wide ? order_of(b) < order_of(a) : order_of(a) < order_of(b);
}

bool asks_for_layers(const std::vector<ReportRow>& records) {
  const std::size_t alone = changes_of(records).size();
  std::size_t quantized = 0;
  for (const ReportRow& r : records) quantized += r.quantized();
  return alone > 1 && 2 * alone > quantized;
}

LayerRanking rank_layers(const std::vector<ReportRow>& records) {
  LayerRanking out;
  const std::vector<Change> changes = changes_of(records);
  if (changes.empty()) return out;
  out.base = changes.front().base;
  out.unit = short_unit(changes.front().record->unit);
  for (const Change& change : changes) {
    const ReportRow& r = *change.record;
    if (short_unit(r.unit) != out.unit) out.unit.clear();
    // A format, and the unit or seed where rows of one layer differ in them.
    const std::string short_label = r.short_label(), layer = layer_words(change.layer);
    const std::string format =
        change.format +
        (r.name.starts_with(short_label) && !change.base ? r.name.substr(short_label.size()) : "");
    std::size_t c = std::find(out.formats.begin(), out.formats.end(), format) - out.formats.begin();
    if (c == out.formats.size()) {
      out.formats.push_back(format);
      out.wide.push_back(change.wide);
    }
    auto known = std::find_if(out.layers.begin(), out.layers.end(),
                              [&](const RankedLayer& of) { return of.name == layer; });
    if (known == out.layers.end()) known = out.layers.insert(known, {layer, {}});
    if (known->cells.size() <= c) known->cells.resize(c + 1);
    known->cells[c] = &r;
  }
  for (RankedLayer& layer : out.layers) layer.cells.resize(out.formats.size());
  std::stable_sort(out.layers.begin(), out.layers.end(),
                   [&](const RankedLayer& a, const RankedLayer& b) {
                     if (is_all(a) != is_all(b)) return is_all(b);
                     const ReportRow *of_a = a.cells[0], *of_b = b.cells[0];
                     if (!of_a || !of_b) return of_a && !of_b;
                     return comes_first(*of_a, *of_b, out.wide[0]);
                   });
  return out;
}

std::string ranking_question(const std::vector<ReportRow>& records) {
  const LayerRanking ranking = rank_layers(records);
  if (!ranking.base) return "which layer breaks first";
  return all_wide(ranking) ? "which layer is worth keeping wide"
                           : "which layer of a recipe tolerates another format";
}

std::string ranking_title(const LayerRanking& ranking) {
  if (!ranking.base) return "Layers, the most sensitive first";
  return ranking.wide[0] ? "Layers, the highest SQNR first" : "Layers, the lowest SQNR first";
}

std::string ranking_rule(const LayerRanking& ranking) {
  const ReportRow* any = ranking.base;
  if (!any && !ranking.layers.empty()) any = ranking.layers[0].cells[0];
  const bool tuned = any && any->is_tuned();
  const Measure& measure = any ? *any->judged.measure : *judged_of({}).measure;
  std::string out = fmt::format(
      "Signal-to-noise ratio of the network's output in dB{} when {}; below it the change from "
      "{} in {}. ",
      tuned ? " against the tuned weights in float32" : "",
      ranking.base ? "only this layer of the recipe has the format"
                   : "only this layer has the format",
      tuned ? "the network before tuning in float32" : "float32",
      measure.factor == 100 ? fmt::format("points of {}", measure.words) : measure.unit);
  if (ranking.base)
    out += fmt::format("The recipe as it is: {}; sentences give the change from it in brackets. ",
                       effect(*ranking.base));
  if (ranking.formats.empty()) return out;
  const bool several = ranking.formats.size() > 1;
  out += fmt::format("Layers are listed in the order for {}{}: ", ranking.formats[0],
                     several ? ", the first format" : "");
  return out + (ranking.wide[0]
                    ? "the highest SQNR first, NaN or infinite outputs last."
                    : fmt::format("NaN or infinite outputs first, {} among them before the "
                                  "others, then the lowest SQNR.",
                                  tuned ? "the largest share" : "the largest loss"));
}

std::vector<std::string> ranking_sentences(const LayerRanking& ranking) {
  std::vector<std::string> out;
  for (std::size_t c = 0; c < ranking.formats.size(); ++c) {
    std::string text = sentence(ranking, c);
    if (!text.empty()) out.push_back(std::move(text));
  }
  return out;
}

}  // namespace numemu::experiments
