#include "experiments/engine/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/digest.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/version.hpp"
#include "policies/canonical_json.hpp"

namespace numemu {

Json FieldCodec<experiments::Ends>::write(const experiments::Ends& ends) {
  const auto end = [](const std::optional<double>& x) { return x ? Json(*x) : Json(); };
  return Json::array({end(ends.low), end(ends.high)});
}

/// Two nulls: no interval, as of one sample with several classes.
bool FieldCodec<experiments::Ends>::read(const Json& json, experiments::Ends& ends) {
  if (!json.is_array() || json.size() != 2) return false;
  if (json[0].is_null() && json[1].is_null()) return true;
  if (!json[0].is_number() || !json[1].is_number()) return false;
  ends = {json[0].get<double>(), json[1].get<double>()};
  return true;
}

Json FieldCodec<Verdict>::write(Verdict verdict) { return to_string(verdict); }

bool FieldCodec<Verdict>::read(const Json& json, Verdict& verdict) {
  if (json.is_string()) verdict = parse_verdict(json.text());
  return json.is_string() && verdict != Verdict::none;
}

}  // namespace numemu

namespace numemu::experiments {
namespace {

Row read(const Json& json, FieldLog& log) {
  log.excused = json.contains("scores");
  log.open = "point";
  Row row = read_known<Row>(json, log);
  row.unknown = std::move(log.members);
  return row;
}

std::string digest_of(Json row) {
  row.erase("digest");
  return sha256_hex(policies::canonical_json(row));
}

/// A name, or the description of a unit.
bool is_unit(const Json& value) { return value.is_string() || value.is_object(); }

bool is_role(const Json& value) {
  if (!value.is_object()) return value.is_null();
  const auto text = [&](const char* key) { return value.contains(key) && value[key].is_string(); };
  // A mask alone: float32 numbers of which some are kept.
  if (value.contains("format") && value["format"].is_null()) return text("mask");
  return text("format") && text("rounding") && text("overflow") && text("scale") &&
         text("granularity");
}

struct Needed {
  const char* path;  ///< JSON pointer
  bool (*holds)(const Json&);
  const char* what;
};

/// Of the point's recipe, which is a document of its own.
constexpr const char* kRole =
    "null or an object with format, rounding, overflow, scale, granularity, or with a mask alone";
constexpr Needed kNeededOfRecipe[] = {
    {"/point/recipe/roles/weight", is_role, kRole},
    {"/point/recipe/roles/activation", is_role, kRole},
    {"/point/recipe/gemms/fprop/unit", is_unit, "a string or a described unit"},
};

std::string missing_of_recipe(const Json& row) {
  for (const Needed& needed : kNeededOfRecipe) {
    const Json* const found = row.find_path(needed.path);
    if (found != nullptr && needed.holds(*found)) continue;
    std::string dotted = needed.path + 1;
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    return fmt::format("{} ({})", dotted, needed.what);
  }
  return "";
}

}  // namespace

Member<double> row_number(double value, int digits) {
  if (!std::isfinite(value)) return Member<double>::null();
  return policies::significant(value, digits);
}

Verdict expected_verdict(double expected, const Ends& ci95, double measured) {
  constexpr double kMore = 3.2905267314919255 / 1.959963984540054;  // 99.9 % over 95 %, normal
  if (!ci95.known() || std::isnan(expected) || std::isnan(measured)) return Verdict::none;
  const double reach = std::abs((measured > expected ? *ci95.high : *ci95.low) - expected);
  return verdict_by_distance(std::abs(measured - expected), reach, kMore * reach);
}

Ends row_ends(double low, double high) { return {row_number(low), row_number(high)}; }

const RowScore* Row::score(const std::string& name) const {
  const auto found = std::ranges::find(scores, name, &RowScore::name);
  return found == scores.end() ? nullptr : &*found;
}

Json to_json(const Row& row) {
  Json json = json_of(row);
  for (const UnknownMember& member : row.unknown) put_back(json, member);
  return json;
}

Json point_json(const Row& row) {
  Json json = json_of(row.point);
  for (const UnknownMember& member : row.unknown) {
    if (member.path.size() > 1 && member.path.front() == "point")
      put_back(json, {{member.path.begin() + 1, member.path.end()}, member.value});
  }
  return json;
}

Row read_row(const Json& json) {
  FieldLog log;
  return read(json, log);
}

Row checked_row(const Json& json, const std::string& path, std::size_t number) {
  FieldLog log;
  Row row = read(json, log);
  std::string missing = log.missing.starts_with("point.") ? "" : missing_of_recipe(json);
  if (missing.empty()) missing = log.missing;
  const std::string writer = row.version == kNumericsVersion
                                 ? ""
                                 : fmt::format("; numerics version {} wrote it, this program is {}",
                                               row.version, kNumericsVersion);
  if (!missing.empty())
    throw Error(
        fmt::format("{}: line {}: expected a row with {}{}", path, number, missing, writer));
  if (row.digest.empty() && !log.unknown.empty())
    throw Error(fmt::format("{}: line {}: {}{}", path, number, log.unknown, writer));
  return row;
}

std::string with_digest(const std::string& line) {
  Json row = Json::parse(line);
  row["digest"] = digest_of(row);
  return row.dump();
}

std::string digest_of(const Row& row) { return digest_of(to_json(row)); }

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
      throw Error(fmt::format("{}: line {}: expected a row with {} (a string)", path, number, key));
  }
  return row;
}

}  // namespace numemu::experiments
