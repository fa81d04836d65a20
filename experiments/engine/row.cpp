#include "experiments/engine/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "formats/digest.hpp"
#include "formats/storage/json_reader.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"
#include "policies/recipe/canonical_json.hpp"

namespace numemu::experiments {
namespace {

/// How a member is written and checked.
enum : unsigned {
  kPlain = 0,
  kAlways = 1,     ///< written where it is empty, too
  kNeeded = 2,     ///< what tables and reports take for granted
  kNullable = 4,   ///< needed, or null
  kOfClasses = 8,  ///< not needed where the row has scores: its targets are no classes
};

template <class T, class As>
concept Is = std::same_as<std::remove_const_t<T>, As>;

// Calls v(key, member, how) for every member, in the order in which rows have them.

void visit(Is<RowBits> auto& b, auto& v) {
  v("weight", b.weight, kNeeded);
  v("activation", b.activation, kNeeded);
  v("product_weight", b.product_weight);
}

void visit(Is<RowMetrics> auto& m, auto& v) {
  v("top1", m.top1, kNeeded | kOfClasses);
  v("n", m.n, kNeeded);
  v("ci95", m.ci95, kNeeded | kOfClasses);
  v("loss", m.loss, kNeeded | kOfClasses | kNullable);
  v("baseline_top1", m.baseline_top1);
  v("difference", m.difference);
  v("difference_ci95", m.difference_ci95);
  v("gained", m.gained);
  v("lost", m.lost);
  v("perplexity", m.perplexity);
  v("bits_per_character", m.bits_per_character);
  v("baseline_bits_per_character", m.baseline_bits_per_character);
  v("bits_per_token", m.bits_per_token);
  v("baseline_bits_per_token", m.baseline_bits_per_token);
  v("sqnr_db", m.sqnr_db);
  v("sqnr_error_db", m.sqnr_error_db);
  v("sqnr_ci95", m.sqnr_ci95);
  v("sqnr_samples", m.sqnr_samples);
  v("sqnr_without_mean_db", m.sqnr_without_mean_db);
  v("sqnr_gained_db", m.sqnr_gained_db);
  v("gain", m.gain);
  v.earlier("not_finite");
}

void visit(Is<RowScore> auto& s, auto& v) {
  v("name", s.name, kAlways);
  v("value", s.value);
  v("ci95", s.ci95);
  v("baseline", s.baseline);
  v("difference", s.difference);
  v("difference_ci95", s.difference_ci95);
  v("resampled", s.resampled);
  v("exact", s.exact);
  v("gained", s.gained);
  v("lost", s.lost);
  v("why_no_value", s.why_no_value);
  v("why_no_baseline", s.why_no_baseline);
}

void visit(Is<RowAnswers> auto& a, auto& v) {
  v("n", a.n);
  v("right", a.right, kAlways);
}

void visit(Is<RowFit> auto& f, auto& v) {
  v("family", f.family, kAlways);
  v("ks", f.ks);
  v("threshold", f.threshold);
  v("accepted", f.accepted);
  v("db", f.db);
  v("verdict", f.verdict);
}

void visit(Is<RowTensor> auto& t, auto& v) {
  v("layer", t.layer, kAlways);
  v("role", t.role, kAlways);
  v("format", t.format, kAlways);
  v("n", t.n);
  v("measured_mse", t.measured_mse);
  v("measured_db", t.measured_db);
  v("standard_error", t.standard_error);
  v("empirical_mse", t.empirical_mse);
  v("empirical_db", t.empirical_db);
  v("verdict", t.verdict);
  v("fitted", t.fitted);
}

void visit(Is<RowLayer> auto& l, auto& v) {
  v("name", l.name, kAlways);
  v("gemm", l.gemm);
  v("unit", l.unit);
  v("sqnr_db", l.sqnr_db);
  v("sqnr_ci95", l.sqnr_ci95);
  v("predicted_db", l.predicted_db);
  v("verdict", l.verdict);
  v("overflow", l.overflow);
  v("underflow", l.underflow);
  v("invalid", l.invalid);
  v("saturated", l.saturated);
  v("left_out", l.left_out);
  v.earlier("not_finite");
}

void visit(Is<RowPrediction> auto& p, auto& v) {
  v("version", p.version);
  v("sqnr_db", p.sqnr_db);
  v("sqnr_error_db", p.sqnr_error_db);
  v("sqnr_gained_db", p.sqnr_gained_db);
  v("gain", p.gain);
  v("verdict", p.verdict);
  v("tensors", p.tensors, kAlways | kNeeded);
  v("left_out", p.left_out);
  v("ignores", p.ignores);
}

void visit(Is<LostCounts> auto& c, auto& v) {
  v("of", c.of);
  v("nan", c.nan);
  v("infinite", c.infinite);
}

void visit(Is<LostLayer> auto& l, auto& v) {
  v("name", l.name, kAlways);
  v("of", l.of);
  v("nan", l.nan);
  v("infinite", l.infinite);
  v("inherited", l.inherited);
  v("causes", l.causes, kAlways);
}

void visit(Is<LostNumbers> auto& l, auto& v) {
  v("samples", l.samples);
  v("outputs", l.outputs);
  v("layers", l.layers, kAlways);
}

void visit(Is<RowLost> auto& l, auto& v) {
  v("test", l.test);
  v("reference", l.reference);
}

void visit(Is<RowLosses> auto& l, auto& v) {
  v("file", l.file, kAlways);
  v("digest", l.digest, kAlways);
  v("score", l.score, kAlways);
}

void visit(Is<RowGate> auto& g, auto& v) {
  v("target", g.target, kAlways);
  v("metric", g.metric, kAlways);
  v("value", g.value);
  v("required", g.required);
  v("margin", g.margin);
  v("margin_ci99", g.margin_ci99);
  v("images", g.images);
  v("images_needed", g.images_needed);
  v("verdict", g.verdict, kAlways);
}

void visit(Is<Row> auto& r, auto& v) {
  v("point", r.point);
  v("key", r.key);
  v("recipe_name", r.recipe_name);
  v("bits", r.bits);
  v("baseline_has", r.baseline_has);
  v("metrics", r.metrics);
  v("scores", r.scores);
  v("answers", r.answers);
  v("predicted", r.predicted);
  v("layers", r.layers, kAlways | kNeeded);
  v("notes", r.notes);
  v("note_kinds", r.note_kinds);
  v("fixed_activations", r.fixed_activations);
  v("not_finite", r.not_finite);
  v("version", r.version);
  v("losses", r.losses);
  v("gate", r.gate);
  v("digest", r.digest);
}

/// Of a struct that visit() knows.
template <class T>
struct Writer {
  Json json = Json::object();

  explicit Writer(const T& of) { visit(of, *this); }

  static Json of(const Json& value) { return value; }
  static Json of(const std::string& text) { return text; }
  static Json of(std::int64_t value) { return value; }
  static Json of(std::uint64_t value) { return value; }
  static Json of(double value) { return value; }
  static Json of(bool value) { return value; }
  static Json of(Verdict verdict) { return to_string(verdict); }
  static Json of(const Ends& ends) {
    const auto end = [](const std::optional<double>& x) { return x ? Json(*x) : Json(); };
    return Json::array({end(ends.low), end(ends.high)});
  }
  template <class V>
  static Json of(const std::vector<V>& list) {
    Json all = Json::array();
    for (const V& one : list) all.push_back(of(one));
    return all;
  }
  template <class V>
  static Json of(const V& of) {
    return Writer<V>(of).json;
  }

  template <class V>
  void operator()(const char* key, const Member<V>& member, unsigned = kPlain) {
    if (member.written()) json[key] = member ? of(*member) : Json();
  }
  template <class V>
  void operator()(const char* key, const V& member, unsigned how = kPlain) {
    if constexpr (requires { member.empty(); }) {
      if (member.empty() && (how & kAlways) == 0) return;
    }
    json[key] = of(member);
  }
  void earlier(const char*) {}
};

/// The keys of a struct.
struct Keys {
  std::vector<std::string> all;
  template <class V>
  void operator()(const char* key, const V&, unsigned = kPlain) {
    all.emplace_back(key);
  }
  void earlier(const char* key) { all.emplace_back(key); }
};

/// In the path of an element of a list that is no struct.
constexpr const char* kBehind = "[]";

/// What reading found beside the members.
struct Found {
  bool has_scores = false;
  std::vector<std::string> path;
  std::string missing;  ///< the first needed member that is not there: "bits.weight (a number)"
  std::string unknown;  ///< the first key that no program wrote: "metrics: unknown key ..."
  std::vector<UnknownMember> members;

  std::string dotted() const {
    std::string text;
    for (const std::string& part : path)
      text += (text.empty() || part.starts_with('[') ? "" : ".") + part;
    return text;
  }
  void keep(const std::string& key, const Json& value) {
    path.push_back(key);
    members.push_back({path, value});
    path.pop_back();
  }
};

template <class T>
constexpr const char* expected_of(unsigned how) {
  if constexpr (Is<T, Member<Ends>>) return "two numbers or two nulls";
  if constexpr (Is<T, std::vector<RowTensor>>) return "a list";
  if constexpr (Is<T, std::vector<RowLayer>>) return "a list of objects with a name";
  return (how & kNullable) != 0 ? "a number or null" : "a number";
}

class Reader {
 public:
  Reader(const Json& json, Found& found) : json_(json), found_(found) {}

  template <class T>
  static void read(const Json& json, T& into, Found& found) {
    Reader reader(json, found);
    visit(into, reader);
    if (json.size() == reader.seen_) return;
    Keys keys;
    visit(into, keys);
    for (const auto& [key, value] : json.items()) {
      if (std::ranges::find(keys.all, key) != keys.all.end()) continue;
      found.keep(key, value);
      if (!found.unknown.empty()) continue;
      const std::string at = found.dotted();
      found.unknown = (at.empty() ? "" : at + ": ") + unknown_name("key", key, keys.all);
    }
  }

  template <class V>
  void operator()(const char* key, V& member, unsigned how = kPlain) {
    const auto at = json_.find(key);
    const bool there = at != json_.end();
    found_.path.emplace_back(key);
    const bool taken = there && take(*at, member);
    if (!taken && (how & kNeeded) != 0 && found_.missing.empty() &&
        (there || (how & kOfClasses) == 0 || !found_.has_scores))
      found_.missing = fmt::format("{} ({})", found_.dotted(), expected_of<V>(how));
    if constexpr (requires { member.is_null; }) {
      if (taken && member.is_null && (how & (kNeeded | kNullable)) == kNeeded &&
          found_.missing.empty())
        found_.missing = fmt::format("{} ({})", found_.dotted(), expected_of<V>(how));
    }
    // Needed members of a struct that is not there are missing.
    if constexpr (!std::same_as<V, Json> && requires { visit(member, *this); }) {
      if (!taken) read(Json::object(), member, found_);
    }
    found_.path.pop_back();
    seen_ += there;
    if (there && !taken) found_.keep(key, *at);
  }
  void earlier(const char* key) {
    const auto at = json_.find(key);
    if (at == json_.end()) return;
    ++seen_;
    found_.keep(key, *at);
  }

 private:
  static bool take(const Json& json, Json& value) {
    value = json;
    return true;
  }
  static bool take(const Json& json, std::string& text) {
    if (json.is_string()) text = json.text();
    return json.is_string();
  }
  static bool take(const Json& json, std::int64_t& value) {
    if (json.is_number()) value = json.get<std::int64_t>();
    return json.is_number();
  }
  static bool take(const Json& json, std::uint64_t& value) {
    if (json.is_number_unsigned()) value = json.get<std::uint64_t>();
    return json.is_number_unsigned();
  }
  static bool take(const Json& json, double& value) {
    if (json.is_number()) value = json.get<double>();
    return json.is_number() && std::isfinite(value);
  }
  static bool take(const Json& json, bool& value) {
    if (json.is_boolean()) value = json.get<bool>();
    return json.is_boolean();
  }
  static bool take(const Json& json, Verdict& verdict) {
    if (json.is_string()) verdict = parse_verdict(json.text());
    return json.is_string() && verdict != Verdict::none;
  }
  /// Two nulls: no interval, as of one sample with several classes.
  static bool take(const Json& json, Ends& ends) {
    if (!json.is_array() || json.size() != 2) return false;
    if (json[0].is_null() && json[1].is_null()) return true;
    if (!json[0].is_number() || !json[1].is_number()) return false;
    ends = {json[0].get<double>(), json[1].get<double>()};
    return true;
  }
  template <class V>
  bool take(const Json& json, Member<V>& member) {
    if (json.is_null()) {
      member = Member<V>::null();
      return true;
    }
    if (!take(json, member.emplace())) {
      member.reset();
      return false;
    }
    return true;
  }
  template <class V>
  bool take(const Json& json, std::vector<V>& list) {
    if (!json.is_array()) return false;
    bool whole = true;
    for (std::size_t i = 0; i < json.size(); ++i) {
      found_.path.push_back(fmt::format("[{}]", list.size()));
      if (!take(json[i], list.emplace_back())) {  // then behind the others
        found_.members.push_back({found_.path, json[i]});
        found_.members.back().path.back() = kBehind;
        list.pop_back();
        whole = false;
      }
      if constexpr (std::same_as<V, RowLayer>)
        whole =
            whole && json[i].is_object() && json[i].contains("name") && json[i]["name"].is_string();
      found_.path.pop_back();
    }
    if constexpr (std::same_as<V, RowLayer>) {
      if (!whole && found_.missing.empty())
        found_.missing = fmt::format("{} ({})", found_.dotted(), expected_of<std::vector<V>>(0));
    }
    return true;
  }
  template <class V>
  bool take(const Json& json, V& into) {
    if (!json.is_object()) return false;
    read(json, into, found_);
    return true;
  }

  const Json& json_;
  Found& found_;
  std::size_t seen_ = 0;
};

Row read(const Json& json, Found& found) {
  Row row;
  if (!json.is_object()) return row;
  found.has_scores = json.contains("scores");
  Reader::read(json, row, found);
  row.unknown = std::move(found.members);
  return row;
}

/// Puts a member back where it was read.
void put(Json& json, const UnknownMember& member) {
  Json* at = &json;
  for (const std::string& part : member.path) {
    if (part == kBehind) {
      at->push_back(Json());
      at = &at->back();
    } else {
      at = at->is_array() ? &at->at(std::stoul(part.substr(1))) : &(*at)[part];
    }
  }
  *at = member.value;
}

std::string digest_of(Json row) {
  row.erase("digest");
  return sha256_hex(policies::canonical_json(row));
}

bool is_text(const Json& value) { return value.is_string(); }
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

/// Of the point, which is a configuration and no struct.
constexpr const char* kRole =
    "null or an object with format, rounding, overflow, scale, granularity, or with a mask alone";
constexpr Needed kNeededOfPoint[] = {
    {"/point/net", is_text, "a string"},
    {"/point/data", is_text, "a string"},
    {"/point/recipe/roles/weight", is_role, kRole},
    {"/point/recipe/roles/activation", is_role, kRole},
    {"/point/recipe/gemms/fprop/unit", is_unit, "a string or a described unit"},
};

std::string missing_of_point(const Json& row) {
  for (const Needed& needed : kNeededOfPoint) {
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

Ends row_ends(double low, double high) { return {row_number(low), row_number(high)}; }

const RowScore* Row::score(const std::string& name) const {
  const auto found = std::ranges::find(scores, name, &RowScore::name);
  return found == scores.end() ? nullptr : &*found;
}

bool Row::turned_off() const {
  const Json* const made = point.find_path("/predictions");
  return made != nullptr && *made == Json(false);
}

Json to_json(const Row& row) {
  Json json = Writer<Row>(row).json;
  for (const UnknownMember& member : row.unknown) put(json, member);
  return json;
}

Json to_json(const RowMetrics& metrics) { return Writer<RowMetrics>(metrics).json; }
Json to_json(const RowScore& score) { return Writer<RowScore>(score).json; }
Json to_json(const std::vector<RowScore>& scores) { return Writer<Row>::of(scores); }
Json to_json(const RowPrediction& predicted) { return Writer<RowPrediction>(predicted).json; }
Json to_json(const RowTensor& tensor) { return Writer<RowTensor>(tensor).json; }
Json to_json(const std::vector<RowLayer>& layers) { return Writer<Row>::of(layers); }
Json to_json(const LostNumbers& lost) { return Writer<LostNumbers>(lost).json; }

Row read_row(const Json& json) {
  Found found;
  return read(json, found);
}

Row checked_row(const Json& json, const std::string& path, std::size_t number) {
  Found found;
  Row row = read(json, found);
  std::string missing = missing_of_point(json);
  if (missing.empty()) missing = found.missing;
  const std::string writer = row.version == kNumericsVersion
                                 ? ""
                                 : fmt::format("; numerics version {} wrote it, this program is {}",
                                               row.version, kNumericsVersion);
  if (!missing.empty())
    throw Error(
        fmt::format("{}: line {}: expected a row with {}{}", path, number, missing, writer));
  if (row.digest.empty() && !found.unknown.empty())
    throw Error(fmt::format("{}: line {}: {}{}", path, number, found.unknown, writer));
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
