#include "experiments/engine/row_schema.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/digest.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::experiments {
namespace {

bool is_text(const Json& value) { return value.is_string(); }
/// A name, or the description of a unit.
bool is_unit(const Json& value) { return value.is_string() || value.is_object(); }
bool is_number(const Json& value) { return value.is_number(); }
bool is_number_or_null(const Json& value) { return value.is_number() || value.is_null(); }
bool is_list(const Json& value) { return value.is_array(); }

/// Two nulls: no interval, as of one sample with several classes.
bool is_interval(const Json& value) {
  return value.is_array() && value.size() == 2 && is_number_or_null(value[0]) &&
         value[0].is_number() == value[1].is_number() && is_number_or_null(value[1]);
}

bool is_role(const Json& value) {
  if (!value.is_object()) return value.is_null();
  const auto text = [&](const char* key) { return value.contains(key) && value[key].is_string(); };
  // A mask alone: float32 numbers of which some are kept.
  if (value.contains("format") && value["format"].is_null()) return text("mask");
  return text("format") && text("rounding") && text("overflow") && text("scale") &&
         text("granularity");
}

bool is_layers(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& layer) {
           return layer.is_object() && layer.contains("name") && layer["name"].is_string();
         });
}

struct Needed {
  const char* path;  ///< JSON pointer
  bool (*holds)(const Json&);
  const char* what;
};

/// What tables and reports take for granted in a row.
constexpr const char* kRole =
    "null or an object with format, rounding, overflow, scale, granularity, or with a mask alone";
constexpr Needed kNeeded[] = {
    {"/point/net", is_text, "a string"},
    {"/point/data", is_text, "a string"},
    {"/point/recipe/roles/weight", is_role, kRole},
    {"/point/recipe/roles/activation", is_role, kRole},
    {"/point/recipe/gemms/fprop/unit", is_unit, "a string or a described unit"},
    {"/bits/weight", is_number, "a number"},
    {"/bits/activation", is_number, "a number"},
    {"/metrics/top1", is_number, "a number"},
    {"/metrics/n", is_number, "a number"},
    {"/metrics/ci95", is_interval, "two numbers or two nulls"},
    {"/metrics/loss", is_number_or_null, "a number or null"},
    {"/predicted/tensors", is_list, "a list"},
    {"/layers", is_layers, "a list of objects with a name"},
};

/// All keys of rows without a digest. A digest would reveal a renamed key; here only
/// its name can.
const std::vector<std::string> kRowKeys = {
    "key",     "point",        "bits",    "metrics",    "predicted",
    "layers",  "notes",        "version", "scores",     "recipe_name",
    "answers", "baseline_has", "losses",  "note_kinds", "fixed_activations"};
const std::vector<std::string> kBitsKeys = {"weight", "activation", "product_weight"};
const std::vector<std::string> kMetricKeys = {"top1",
                                              "n",
                                              "ci95",
                                              "loss",
                                              "baseline_top1",
                                              "difference",
                                              "difference_ci95",
                                              "gained",
                                              "lost",
                                              "perplexity",
                                              "bits_per_character",
                                              "baseline_bits_per_character",
                                              "bits_per_token",
                                              "baseline_bits_per_token",
                                              "sqnr_db",
                                              "sqnr_error_db",
                                              "sqnr_ci95",
                                              "sqnr_samples",
                                              "sqnr_without_mean_db",
                                              "sqnr_gained_db",
                                              "gain",
                                              "not_finite"};
const std::vector<std::string> kPredictedKeys = {"version",        "sqnr_db", "sqnr_error_db",
                                                 "sqnr_gained_db", "gain",    "verdict",
                                                 "left_out",       "ignores", "tensors"};
const std::vector<std::string> kTensorKeys = {
    "layer",          "role",          "format",       "n",       "measured_mse", "measured_db",
    "standard_error", "empirical_mse", "empirical_db", "verdict", "fitted"};
const std::vector<std::string> kLayerKeys = {
    "name",     "gemm",      "unit",    "sqnr_db",   "predicted_db", "left_out", "verdict",
    "overflow", "underflow", "invalid", "saturated", "not_finite",   "sqnr_ci95"};

void require_known_keys(const JsonReader& row) {
  row.require_keys(kRowKeys);
  row.member("bits").require_keys(kBitsKeys);
  row.member("metrics").require_keys(kMetricKeys);
  const JsonReader predicted = row.member("predicted"), tensors = predicted.member("tensors"),
                   layers = row.member("layers");
  predicted.require_keys(kPredictedKeys);
  for (std::size_t i = 0; i < tensors.value().size(); ++i)
    tensors.element(i).require_keys(kTensorKeys);
  for (std::size_t i = 0; i < layers.value().size(); ++i)
    layers.element(i).require_keys(kLayerKeys);
}

std::string digest_of(Json row) {
  row.erase("digest");
  return sha256_hex(policies::canonical_json(row));
}

bool is_of_classes(std::string_view path) {
  return path == "/metrics/top1" || path == "/metrics/ci95" || path == "/metrics/loss";
}

[[noreturn]] void refuse_row(const std::string& path, std::size_t number, const std::string& what) {
  throw Error(fmt::format("{}: line {}: expected a row with {}", path, number, what));
}

}  // namespace

std::string with_digest(const std::string& line) {
  Json row = Json::parse(line);
  row["digest"] = digest_of(row);
  return row.dump();
}

Json parse_identity(const std::string& line, const std::string& path, std::size_t number) {
  const auto damaged = [&](const std::string& how) {
    return DamagedRow(fmt::format("{}: line {}: a damaged row ({})", path, number, how));
  };
  Json row;
  try {
    row = parse_json(line, "");
  } catch (const Error& error) {
    const std::string text = error.what();  // ": line 1 column 7: not valid JSON"
    throw damaged(text.substr(text.rfind(": ") + 2));
  }
  if (!row.is_object())
    throw Error(fmt::format("{}: line {}: expected a row (a JSON object)", path, number));
  if (row.contains("digest") && row["digest"] != digest_of(row))
    throw damaged("digest does not match");
  for (const char* key : {"key", "version"}) {
    if (!row.contains(key) || !row[key].is_string())
      refuse_row(path, number, fmt::format("{} (a string)", key));
  }
  return row;
}

void check_schema(const Json& row, const std::string& path, std::size_t number) {
  for (const Needed& needed : kNeeded) {
    // Where targets are no classes, scores are what there is.
    if (is_of_classes(needed.path) && row.contains("scores") &&
        row.find_path(needed.path) == nullptr)
      continue;
    const Json* const found = row.find_path(needed.path);
    if (found != nullptr && needed.holds(*found)) continue;
    std::string dotted = needed.path + 1;
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    refuse_row(path, number, fmt::format("{} ({})", dotted, needed.what));
  }
  if (!row.contains("digest"))
    require_known_keys(JsonReader(row, fmt::format("{}: line {}", path, number)));
}

Json parse_row(const std::string& line, const std::string& path, std::size_t number) {
  Json row = parse_identity(line, path, number);
  check_schema(row, path, number);
  return row;
}

}  // namespace numemu::experiments
