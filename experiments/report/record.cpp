// Reads rows of schema version 1 leniently: a report must appear for any rows, also incomplete
// ones.
#include "experiments/report/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emu/stats/interval.hpp"
#include "experiments/report/names.hpp"
#include "experiments/report/not_finite_text.hpp"
#include "experiments/report/row_scores.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/format.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {
namespace {

void describe_element(RoleRecord& out, const Format& format) {
  if (format.kind != Kind::floating && format.kind != Kind::integer) return;
  const bool floating = format.kind == Kind::floating;
  out.family = floating ? "float" : "int";
  out.bits = format.bits;
  // An integer is a float without exponent: its magnitude bits stand in the mantissa's place.
  out.exponent_bits = floating ? format.exponent_bits : 0;
  out.mantissa_bits = floating ? format.mantissa_bits : format.bits - (format.is_signed ? 1 : 0);
}

/// The rows may be another version's: a name that is not known here is drawn as "other".
void describe_format(RoleRecord& out) {
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

RoleRecord read_role(const Json* json) {
  RoleRecord out;
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

std::string unit_name(const Json& row, const char* gemm) {
  return unit_words(json_at(row, {"point", "recipe", "gemms", gemm, "unit"}));
}

std::optional<double> bound(const Json& row, const char* key, std::size_t side) {
  const Json* pair = json_at(row, {"metrics", key});
  if (!pair || !pair->is_array() || pair->size() != 2) return std::nullopt;
  const Json& value = (*pair)[side];
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

/// Where the base is float32 and one rule of `layers` alone quantizes.
void read_only_layer(const Json& row, Record& r) {
  const Json* layers = json_at(row, {"point", "recipe", "layers"});
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
bool fixes_activations(const Json& row) {
  if (!json_at(row, {"point", "ranges"}) && !json_at(row, {"point", "recipe", "ranges"}))
    return false;
  const Json* layers = json_at(row, {"layers"});
  if (!layers || !layers->is_array() || !json_at(row, {"note_kinds"})) return true;
  return json_number(row, {"fixed_activations"}).value_or(0) >= static_cast<double>(layers->size());
}

/// The rule of calibration where it clips what the scale rule then reads.
void add_calibration(const Json& row, RoleRecord& role) {
  const std::string rule = json_text(row, {"point", "recipe", "calibrate", "rule"});
  if (rule.empty() || rule == "absmax" || rule == "dynamic" || role.family == "block" ||
      role.granularity != "tensor" || fixes_activations(row))
    return;
  role.scale += ", " + rule;
}

Record read_record(const Json& row, std::size_t position) {
  Record r;
  r.position = position;
  r.row = &row;
  r.key = json_text(row, {"key"});
  r.net = json_text(row, {"point", "net"});
  r.data = json_text(row, {"point", "data"});
  r.version = json_text(row, {"version"});
  r.recipe = json_text(row, {"recipe_name"});
  r.eval_images = json_number(row, {"point", "eval_images"});
  r.seed = json_number(row, {"point", "seed"});
  if (!r.seed) r.seed = json_number(row, {"point", "recipe", "seed"});
  r.weights_digest = json_text(row, {"point", "weights"});
  r.weight = read_role(json_at(row, {"point", "recipe", "roles", "weight"}));
  r.activation = read_role(json_at(row, {"point", "recipe", "roles", "activation"}));
  read_only_layer(row, r);
  r.unit = unit_name(row, "fprop");
  r.dgrad_unit = unit_name(row, "dgrad");
  r.wgrad_unit = unit_name(row, "wgrad");
  add_calibration(row, r.activation);
  const Json* recipe = json_at(row, {"point", "recipe"});
  if (recipe && is_put_back(*recipe)) {
    r.weight = r.activation = RoleRecord{};
  } else {
    if (recipe) r.other = other_rules(*recipe);
    r.overrides = layer_overrides(row);
  }
  r.bits_weight = json_number(row, {"bits", "weight"});
  r.bits_product_weight = json_number(row, {"bits", "product_weight"});
  r.bits_activation = json_number(row, {"bits", "activation"});
  r.judged = judged_of(row);
  r.top1 = json_number(row, {"metrics", "top1"});
  r.images = json_number(row, {"metrics", "n"});
  r.ci_low = bound(row, "ci95", 0);
  r.ci_high = bound(row, "ci95", 1);
  r.loss = json_number(row, {"metrics", "loss"});
  r.sqnr_db = json_number(row, {"metrics", "sqnr_db"});
  r.sqnr_error_db = json_number(row, {"metrics", "sqnr_error_db"});
  r.bits_per_character = json_number(row, {"metrics", "bits_per_character"});
  r.perplexity = json_number(row, {"metrics", "perplexity"});
  // The score is the same figure without the rounding to float32: reports show one number.
  if (const auto score = score_value(r, "perplexity")) r.perplexity = score;
  r.baseline_bits_per_character = json_number(row, {"metrics", "baseline_bits_per_character"});
  r.baseline_top1 = json_number(row, {"metrics", "baseline_top1"});
  r.difference = json_number(row, {"metrics", "difference"});
  r.difference_low = bound(row, "difference_ci95", 0);
  r.difference_high = bound(row, "difference_ci95", 1);
  r.predicted_sqnr_db = json_number(row, {"predicted", "sqnr_db"});
  r.centred_db = json_number(row, {"metrics", "sqnr_without_mean_db"});
  r.gained_db = json_number(row, {"metrics", "sqnr_gained_db"});
  r.gain = json_number(row, {"metrics", "gain"});
  r.predicted_gained_db = json_number(row, {"predicted", "sqnr_gained_db"});
  r.predicted_gain = json_number(row, {"predicted", "gain"});
  // Beside outputs of another gain alone there is no noise: rows, which hold no infinity, have
  // null.
  if (!r.gained_db && r.sqnr_db && r.gain) r.gained_db = HUGE_VAL;
  if (!r.predicted_gained_db && r.predicted_sqnr_db && r.predicted_gain)
    r.predicted_gained_db = HUGE_VAL;
  // That predictions are turned off is no finding about a row.
  if (json_text(row, {"point", "predictions"}) != "false")
    r.left_out = json_text(row, {"predicted", "left_out"});
  r.not_finite = is_not_finite(row);
  if (const Json* notes = json_at(row, {"notes"}); notes && notes->is_array()) {
    for (const Json& note : *notes)
      if (note.is_string()) r.notes.push_back(note.get<std::string>());
  }
  if (!r.difference && r.top1 && r.baseline_top1) r.difference = *r.top1 - *r.baseline_top1;
  return r;
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

Verdict json_verdict(const Json& value, std::initializer_list<const char*> path) {
  return parse_verdict(json_text(value, path));
}

std::optional<double> Record::mean_bits() const {
  if (bits_weight && bits_activation) return (*bits_weight + *bits_activation) / 2;
  return bits_weight ? bits_weight : bits_activation;
}

std::string Record::family() const {
  const RoleRecord& w = only_in.empty() ? weight : layer_weight;
  const RoleRecord& a = only_in.empty() ? activation : layer_activation;
  if (!w.quantized) return a.family;
  if (!a.quantized || w.family == a.family) return w.family;
  return "mixed";
}

std::string Record::formats() const {
  const std::string w = short_format((only_in.empty() ? weight : layer_weight).format),
                    a = short_format((only_in.empty() ? activation : layer_activation).format);
  return w == a ? w : w + " / " + a;
}

std::string Record::short_label() const {
  if (!recipe.empty()) return recipe;
  if (!only_in.empty()) return formats() + " in " + layer_words(only_in);
  return overrides.empty() ? formats() : formats() + " + " + overrides;
}

std::string Record::not_finite_words() const { return joined(not_finite_sentences(*row), "; "); }

bool Record::is_tuned() const {
  return row != nullptr && !json_text(*row, {"point", "tuned_from"}).empty();
}

std::optional<std::pair<double, double>> Record::sqnr_interval() const {
  if (!sqnr_db || !sqnr_error_db) return std::nullopt;
  const double half = stats::kNormal95 * *sqnr_error_db;
  return std::pair(*sqnr_db - half, *sqnr_db + half);
}

std::optional<double> Record::hidden_by_mean() const {
  return sqnr_db && centred_db && *sqnr_db - *centred_db > kMeanHides ? centred_db : std::nullopt;
}

std::string Record::all_notes() const { return joined(notes, "; "); }

bool Record::unit_ignored() const {
  if (!predicted_sqnr_db) return false;
  if (prediction_ignores(unit)) return true;
  const Json* layers = row ? json_at(*row, {"layers"}) : nullptr;
  return layers && layers->is_array() &&
         std::any_of(layers->begin(), layers->end(), [](const Json& layer) {
           const std::string own = json_text(layer, {"unit"});
           return !own.empty() && prediction_ignores(own);
         });
}

std::vector<Record> read_records(const std::vector<Json>& rows, const std::string& folder) {
  std::vector<Record> out;
  out.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back(read_record(rows[i], i));
    out.back().folder = folder;
  }
  name_records(out);
  return out;
}

}  // namespace numemu::experiments
