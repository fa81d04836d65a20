#include "experiments/report/report_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/stats/interval.hpp"
#include "experiments/engine/scores.hpp"
#include "experiments/predict/version.hpp"
#include "experiments/report/names.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace {

void describe_element(ReportRole& out, const Format& format) {
  if (format.kind != Kind::floating && format.kind != Kind::integer) return;
  const bool floating = format.kind == Kind::floating;
  out.family = floating ? "float" : "int";
  out.bits = format.bits;
  // An integer is a float without exponent: its magnitude bits stand in the mantissa's place.
  out.exponent_bits = floating ? format.exponent_bits : 0;
  out.mantissa_bits = floating ? format.mantissa_bits : format.bits - (format.is_signed ? 1 : 0);
}

/// The rows may be another version's: a name that is not known here is drawn as "other".
void describe_format(ReportRole& out) {
  out.family = "other";
  out.bits = out.exponent_bits = out.mantissa_bits = std::nullopt;
  try {
    if (block_format_meant(out.format).empty()) {
      describe_element(out, find_format(out.format));
      return;
    }
    const BlockFormat& block = find_block_format(out.format);
    describe_element(out, *block.element);
    out.element = block.element->name;
    out.family = "block";
  } catch (const Error&) {
  }
}

ReportRole read_role(const Json* json) {
  ReportRole out;
  if (!json || !json->is_object()) return out;
  out.quantized = true;
  out.format = json_text(*json, {"format"});
  if (out.format.empty()) out.format = "float32";  // a mask alone
  out.rounding = json_text(*json, {"rounding"});
  out.overflow = json_text(*json, {"overflow"});
  out.scale = shown_scale(json_text(*json, {"scale"}));
  if (json_text(*json, {"zero_point"}) == "calibrated") out.scale += ", zero point";
  out.granularity = json_text(*json, {"granularity"});
  out.axis = json_text(*json, {"axis"});
  out.mask = json_text(*json, {"mask"});
  describe_format(out);
  return out;
}

std::string unit_name(const Row& row, const char* gemm) {
  return unit_words(json_at(row.point.recipe, {"gemms", gemm, "unit"}));
}

/// Where the base is float32 and one rule of `layers` alone quantizes.
void read_only_layer(const Row& row, ReportRow& r) {
  const Json* layers = json_at(row.point.recipe, {"layers"});
  if (r.weight.quantized || r.activation.quantized || !layers || !layers->is_array() ||
      layers->size() != 1)
    return;
  const Json& rule = layers->front();
  r.layer_weight = read_role(json_at(rule, {"roles", "weight"}));
  r.layer_activation = read_role(json_at(rule, {"roles", "activation"}));
  if (r.layer_weight.quantized || r.layer_activation.quantized)
    r.only_in = json_text(rule, {"match"});
}

/// Whether the last rule of `layers` puts every layer back to float32 and no other role is
/// quantized: such a network is float32, whatever precedes in the recipe.
bool is_put_back(const Json& recipe) {
  const Json* layers = json_at(recipe, {"layers"});
  if (!layers || !layers->is_array() || layers->empty()) return false;
  const auto leaves_others = [](const Json* roles) {
    if (!roles || !roles->is_object()) return true;
    for (const auto& [name, value] : roles->items())
      if (name != "weight" && name != "activation" && !value.is_null()) return false;
    return true;
  };
  if (!leaves_others(json_at(recipe, {"roles"}))) return false;
  for (const Json& rule : *layers)
    if (!leaves_others(json_at(rule, {"roles"})) || json_at(rule, {"gemms"})) return false;
  const Json& last = layers->back();
  const Json *weight = json_at(last, {"roles", "weight"}),
             *activation = json_at(last, {"roles", "activation"});
  return json_text(last, {"match"}) == "*" && weight && weight->is_null() && activation &&
         activation->is_null();
}

/// Whether ranges fix the scales of all activations, so that none is calibrated. A point has no
/// more than the digest of a checkpoint's ranges; rows of earlier programs do not count those in
/// use.
bool fixes_activations(const Row& row) {
  if (row.point.ranges.empty() && !json_at(row.point.recipe, {"ranges"})) return false;
  if (row.layers.empty() || row.note_kinds.empty()) return true;
  return row.fixed_activations.value_or(0) >= std::ssize(row.layers);
}

/// The rule of calibration where it clips what the scale rule then reads.
void add_calibration(const Row& row, ReportRole& role) {
  const std::string rule = json_text(row.point.recipe, {"calibrate", "rule"});
  if (rule.empty() || rule == "absmax" || rule == "dynamic" || role.family == "block" ||
      role.granularity != "tensor" || fixes_activations(row))
    return;
  role.scale += ", " + rule;
}

ReportRow report_row(const Row& row, std::size_t position, const std::string& folder) {
  ReportRow r;
  const Json& recipe = row.point.recipe;
  r.row = &row;
  r.position = position;
  r.folder = folder;
  if (const auto& seed = row.point.seed) r.seed = static_cast<double>(*seed);
  if (!r.seed) r.seed = json_number(recipe, {"seed"});
  r.weight = read_role(json_at(recipe, {"roles", "weight"}));
  r.activation = read_role(json_at(recipe, {"roles", "activation"}));
  read_only_layer(row, r);
  r.unit = unit_name(row, "fprop");
  r.dgrad_unit = unit_name(row, "dgrad");
  r.wgrad_unit = unit_name(row, "wgrad");
  add_calibration(row, r.activation);
  if (is_put_back(recipe)) {
    r.weight = r.activation = ReportRole{};
  } else {
    r.other = other_rules(recipe);
    r.overrides = layer_overrides(row);
  }
  r.judged = judged_of(row);
  const RowMetrics& m = row.metrics;
  r.sqnr_db = m.sqnr_db;
  r.sqnr_error_db = m.sqnr_error_db;
  r.predicted_sqnr_db = row.predicted.sqnr_db;
  r.difference = m.difference;
  if (!r.difference && m.top1 && m.baseline_top1) r.difference = *m.top1 - *m.baseline_top1;
  const RowScore* const score = row.score("perplexity");
  r.perplexity = score && score->value ? score->value : m.perplexity;
  // Beside outputs of another gain alone there is no noise: rows, which hold no infinity, have
  // null.
  r.gained_db = m.sqnr_gained_db;
  if (!r.gained_db && r.sqnr_db && m.gain) r.gained_db = HUGE_VAL;
  r.predicted_gained_db = row.predicted.sqnr_gained_db;
  if (!r.predicted_gained_db && r.predicted_sqnr_db && row.predicted.gain)
    r.predicted_gained_db = HUGE_VAL;
  // That predictions are turned off is no finding about a row.
  if (!row.turned_off()) r.left_out = row.predicted.left_out;
  r.not_finite = is_not_finite(row);
  return r;
}

/// "12 of 40 outputs are NaN", "... are infinite", "... are NaN (10) or infinite (2)".
std::string amount(const auto& counts, const char* what, const char* verb) {
  std::string out =
      fmt::format("{} of {} {} {}", grouped(counts.lost()), grouped(counts.of), what, verb);
  if (counts.nan > 0 && counts.infinite > 0)
    return out +
           fmt::format("NaN ({}) or infinite ({})", grouped(counts.nan), grouped(counts.infinite));
  return out + (counts.nan > 0 ? "NaN" : "infinite");
}

}  // namespace

const Json* json_at(const Json& value, std::initializer_list<const char*> path) {
  const Json* at = &value;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::optional<double> json_number(const Json& value, std::initializer_list<const char*> path) {
  const Json* found = json_at(value, path);
  if (!found || !found->is_number()) return std::nullopt;
  const double number = found->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::string json_text(const Json& value, std::initializer_list<const char*> path) {
  const Json* found = json_at(value, path);
  if (!found || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->dump(-1, Json::NotUtf8::replace);
}

std::optional<double> ReportRow::mean_bits() const {
  const Member<double>&w = row->bits.weight, &a = row->bits.activation;
  return w && a ? (*w + *a) / 2 : w ? w : a;
}

std::string ReportRow::family() const {
  const ReportRole& w = only_in.empty() ? weight : layer_weight;
  const ReportRole& a = only_in.empty() ? activation : layer_activation;
  if (!w.quantized) return a.family;
  if (!a.quantized || w.family == a.family) return w.family;
  return "mixed";
}

std::string ReportRow::formats() const {
  const std::string w = short_format((only_in.empty() ? weight : layer_weight).format),
                    a = short_format((only_in.empty() ? activation : layer_activation).format);
  return w == a ? w : w + " / " + a;
}

std::string ReportRow::short_label() const {
  if (!row->recipe_name.empty()) return row->recipe_name;
  if (!only_in.empty()) return formats() + " in " + layer_words(only_in);
  return overrides.empty() ? formats() : formats() + " + " + overrides;
}

std::string ReportRow::not_finite_words() const { return joined(not_finite_sentences(*row), "; "); }

bool ReportRow::is_tuned() const { return !row->point.tuned_from.empty(); }

std::optional<std::pair<double, double>> ReportRow::sqnr_interval() const {
  if (!sqnr_db || !sqnr_error_db) return std::nullopt;
  const double half = stats::kNormal95 * *sqnr_error_db;
  return std::pair(*sqnr_db - half, *sqnr_db + half);
}

std::optional<double> ReportRow::hidden_by_mean() const {
  const std::optional<double>& centred = row->metrics.sqnr_without_mean_db;
  return sqnr_db && centred && *sqnr_db - *centred > kMeanHides ? centred : std::nullopt;
}

std::string ReportRow::all_notes() const { return joined(row->notes, "; "); }

bool ReportRow::unit_ignored() const {
  if (!predicted_sqnr_db) return false;
  if (!ignores_units(row->predicted.version.value_or(1))) return false;
  if (prediction_ignores(unit)) return true;
  return std::ranges::any_of(row->layers, prediction_ignores, &RowLayer::unit);
}

bool ReportRow::sqnr_missed() const {
  return predicted_sqnr_db && row->predicted.verdict == Verdict::fails;
}

std::vector<ReportRow> report_rows(const std::vector<Row>& rows, const std::string& folder) {
  std::vector<ReportRow> out;
  out.reserve(rows.size());
  for (const Row& row : rows) out.push_back(report_row(row, out.size(), folder));
  name_rows(out);
  return out;
}

bool any_predictions(const std::vector<ReportRow>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const ReportRow& r) { return !r.is_float32() && !r.row->turned_off(); });
}

std::vector<Row> without_predictions(std::vector<Row> rows) {
  for (Row& row : rows) {
    row.point.predictions = false;
    row.predicted = {};
    row.predicted.sqnr_db = Member<double>::null();
    row.predicted.verdict = Member<Verdict>::null();
    for (RowLayer& layer : row.layers) {
      layer.predicted_db = Member<double>::null();
      layer.verdict = Member<Verdict>::null();
      layer.left_out.clear();
    }
  }
  return rows;
}

std::vector<std::string> score_columns(const std::vector<ReportRow>& records) {
  std::vector<std::string> names;
  for (const ReportRow& record : records) {
    for (const RowScore& score : record.row->scores) {
      if (score.name != "top1" && std::ranges::find(names, score.name) == names.end())
        names.push_back(score.name);
    }
  }
  return names;
}

std::string score_text(const ReportRow& record, const std::string& name) {
  const RowScore* const score = record.row->score(name);
  if (!score || !score->value) return "";
  std::string text = fmt::format("{:.4g}", *score->value);
  if (score->ci95 && score->ci95->known())
    text += " " + interval_text(*score->ci95->low, *score->ci95->high, "");
  return text;
}

std::string none_differs(const RowScore& score, std::int64_t samples) {
  // The interval of a metric without an exact one is that of resamples, which have no difference.
  // AUC depends on the order of the samples alone: their logits may differ where it does not.
  const bool alike = score.name != "auc" && samples > 0 && !score.resampled.empty() &&
                     score.difference == 0.0 &&
                     (std::ranges::find(score.exact, "difference_ci95") != score.exact.end() ||
                      score.difference_ci95 == Ends{0, 0});
  if (!alike) return "";
  const std::string& drawn = score.resampled;
  const bool windows = drawn != "samples";
  const std::int64_t length = windows ? block_length(samples) : 1;
  const double share = stats::share_of_none((samples + length - 1) / length);
  return fmt::format(
      "no {}'s figure differs from float32; at 95 % at most {} % of {} do (Clopper-Pearson)",
      windows ? "window" : "sample", percent_text(share, "{:.1f}"), drawn);
}

bool is_not_finite(const Row& row) {
  return row.not_finite.has_value() || (!row.not_finite.written() && row.metrics.loss.is_null);
}

std::vector<std::string> not_finite_sentences(const Row& row) {
  std::vector<std::string> out;
  if (!is_not_finite(row)) return out;
  const LostNumbers* const counts = row.not_finite ? row.not_finite->counted() : nullptr;
  if (!counts) return {"outputs are NaN or infinite (the row does not count them)"};
  const std::string samples = fmt::format("{} {} samples", grouped(counts->samples),
                                          row.not_finite->test ? "test" : "calibration");
  if (counts->outputs.lost() > 0) {
    out.push_back(fmt::format("{} ({})", amount(counts->outputs, "outputs", "are "), samples));
  } else {
    out.push_back(fmt::format("the outputs are finite, results of layers are not ({})", samples));
  }
  std::vector<std::string> carried;
  for (const LostLayer& layer : counts->layers) {
    if (layer.inherited >= layer.lost()) {
      carried.push_back(layer.name);
      continue;
    }
    out.push_back(fmt::format("{}: {}: {}", layer.name, amount(layer, "results", ""),
                              joined(layer.causes, ", ")));
  }
  if (!carried.empty()) out.push_back("passed on by " + joined(carried, ", "));
  return out;
}

double not_finite_results(const Row& row, const std::string& name) {
  std::int64_t most = 0;
  if (!row.not_finite) return 0;
  for (const Member<LostNumbers>* const pass :
       {&row.not_finite->test, &row.not_finite->reference}) {
    if (!*pass) continue;
    for (const LostLayer& layer : (*pass)->layers) {
      if (layer.name == name) most = std::max(most, layer.lost());
    }
  }
  return static_cast<double>(most);
}

}  // namespace numemu::experiments
