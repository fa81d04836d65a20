#include "experiments/report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace numemu::experiments {
namespace {

using Rows = std::vector<std::size_t>;

constexpr const char *kAbsent = "none", *kUnit = "gemms.fprop.unit", *kLayers = "layers",
                     *kVersion = "version";

/// A point as dotted keys with values in words; a unit that is an object also key by key, below
/// "unit.".
using Keys = std::map<std::string, std::string>;

void flatten(const Json& value, const std::string& path, Keys& out) {
  const bool unit = path.ends_with(".unit");
  if (value.is_object() && !value.empty()) {
    if (unit && path == kUnit) {
      for (const auto& [key, item] : value.items()) flatten(item, "unit." + key, out);
    }
    if (!unit) {
      for (const auto& [key, item] : value.items())
        flatten(item, path.empty() ? key : path + "." + key, out);
      return;
    }
  }
  std::string words = unit                ? unit_words(&value)
                      : value.is_string() ? value.get<std::string>()
                                          : value.dump(-1, Json::NotUtf8::replace);
  if (path.ends_with(".scale")) words = shown_scale(words);
  out[path] = value.is_null() || words.empty() ? kAbsent : words;
}

/// Of the point and its recipe, whose names are not in the keys; layers are one key.
Keys keys_of(const ReportRow& r) {
  Keys out;
  if (!r.row->version.empty()) out[kVersion] = r.row->version;
  const Json point = point_json(*r.row);
  if (const Json& recipe = r.row->point.recipe; recipe.is_object()) {
    for (const auto& [key, item] : recipe.items()) {
      const std::string name = point.contains(key) ? "recipe." + key : key;
      if (key != kLayers) flatten(item, key == "roles" ? "" : name, out);
    }
    if (const std::string rules = layer_rules(recipe); !rules.empty()) out[kLayers] = rules;
  }
  for (const auto& [key, item] : point.items()) {
    if (key != "recipe") flatten(item, key, out);
  }
  return out;
}

std::string at(const Keys& keys, const std::string& key) {
  const auto found = keys.find(key);
  return found == keys.end() ? kAbsent : found->second;
}

/// Whether the key belongs to something that this row does not have: a scale of a role that is
/// float32.
bool is_moot(const Keys& keys, const std::string& key) {
  for (std::size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1)) {
    if (keys.contains(key.substr(0, dot))) return true;
  }
  return false;
}

/// Follow from other keys, and are named only where no other key distinguishes rows.
bool is_detail(const std::string& key) {
  return key == "weights" || key == "graph" || key == "images" || key == "predictions" ||
         key == kVersion || key.starts_with("unit.");
}

/// Whether every table has a column that shows the key.
bool has_column(const std::string& key) {
  static const std::set<std::string> kShown = {"format", "rounding",    "overflow",
                                               "scale",  "granularity", "mask"};
  if (key == kUnit || key == kLayers) return true;
  const std::size_t dot = std::min(key.find('.'), key.size());
  const std::string role = key.substr(0, dot), rest = key.substr(std::min(dot + 1, key.size()));
  static const std::set<std::string> kRoles = {"weight", "activation", "gradient", "vector",
                                               "output", "saved",      "state",    "exchange"};
  if (!kRoles.contains(role)) return false;
  return rest.empty() || kShown.contains(rest) || rest.starts_with("dgrad") ||
         rest.starts_with("wgrad");
}

/// The keys whose values differ among some rows; units of training that are that of the forward
/// products are not counted.
std::vector<std::string> varying(const std::vector<Keys>& all, const Rows& rows) {
  std::set<std::string> names;
  for (const std::size_t i : rows) {
    for (const auto& [key, value] : all[i]) names.insert(key);
  }
  const auto same = [&](auto value_of) {
    return std::all_of(rows.begin(), rows.end(),
                       [&](std::size_t i) { return value_of(i) == value_of(rows.front()); });
  };
  std::vector<std::string> out;
  for (const std::string& key : names) {
    if (same([&](std::size_t i) { return at(all[i], key); })) continue;
    const bool unit = key == "gemms.dgrad.unit" || key == "gemms.wgrad.unit";
    if (unit && std::all_of(rows.begin(), rows.end(),
                            [&](std::size_t i) { return at(all[i], key) == at(all[i], kUnit); }))
      continue;
    out.push_back(key);
  }
  return out;
}

/// The keys that distinguish the rows as well as all keys do, formats first.
std::vector<std::string> needed(std::vector<std::string> keys, const std::vector<Keys>& all,
                                const Rows& rows) {
  std::stable_sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
    return a.ends_with("format") > b.ends_with("format");
  });
  std::vector<std::string> texts(rows.size()), out;
  std::size_t classes = 1;
  for (const std::string& key : keys) {
    std::vector<std::string> finer = texts;
    for (std::size_t i = 0; i < rows.size(); ++i) finer[i] += at(all[rows[i]], key) + '\n';
    const std::size_t count = std::set<std::string>(finer.begin(), finer.end()).size();
    if (count == classes) continue;
    classes = count;
    texts = std::move(finer);
    out.push_back(key);
  }
  return out;
}

/// "calibrate.rule absmax, seed 1" of one row; a key that weights and activations share in all rows
/// is written once, without its role.
std::string words_of(const std::vector<std::string>& keys, const std::vector<Keys>& all,
                     const Rows& rows, const Keys& own) {
  std::string out;
  std::set<std::string> said;
  for (const std::string& key : keys) {
    const std::string last = key.substr(std::min(key.find('.') + 1, key.size()));
    const bool operand = key.starts_with("weight.") || key.starts_with("activation.");
    const bool shared = operand && std::all_of(rows.begin(), rows.end(), [&](std::size_t i) {
                          return at(all[i], "weight." + last) == at(all[i], "activation." + last);
                        });
    std::string shown = shared ? last : key;
    const bool format = shown.ends_with(".format");
    if (format) shown.resize(shown.size() - 7);
    if (said.insert(shown).second && (format || !is_moot(own, key)))
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", shown, at(own, key));
  }
  return out;
}

/// The value of a key that most of the rows have; of several the first.
std::string commonest(const std::string& key, const std::vector<Keys>& all, const Rows& rows) {
  std::map<std::string, std::size_t> counts;
  for (const std::size_t i : rows) ++counts[at(all[i], key)];
  std::string best = at(all[rows.front()], key);
  for (const std::size_t i : rows) {
    if (const std::string value = at(all[i], key); counts[value] > counts[best]) best = value;
  }
  return best;
}

/// The value that names omit: the commonest of all rows, or of these if they do not have that one.
std::string usual(const std::string& key, const std::vector<Keys>& all, const Rows& rows) {
  Rows every(all.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const std::string value = commonest(key, all, every);
  return std::any_of(rows.begin(), rows.end(),
                     [&](std::size_t i) { return at(all[i], key) == value; })
             ? value
             : commonest(key, all, rows);
}

void drop_seeds(Keys& keys) {
  keys.erase("seed");
  keys.erase("recipe.seed");
}

using Texts = std::vector<std::string>;

/// What each of the rows has of the keys, to be appended to its name.
Texts all_words(const std::vector<std::string>& keys, const std::vector<Keys>& all,
                const Rows& rows) {
  Texts out;
  for (const std::size_t i : rows) out.push_back(", " + words_of(keys, all, rows, all[i]));
  return out;
}

/// Words without what is usual, unless two rows that differ would read alike.
Texts unusual_words(const std::vector<std::string>& keys, const std::vector<Keys>& all,
                    const Rows& rows) {
  std::map<std::string, std::string> usual_values;
  for (const std::string& key : keys) usual_values[key] = usual(key, all, rows);
  Texts full = all_words(keys, all, rows), out;
  for (const std::size_t i : rows) {
    std::vector<std::string> own = keys;
    std::erase_if(own,
                  [&](const std::string& key) { return at(all[i], key) == usual_values[key]; });
    const std::string words = words_of(own, all, rows, all[i]);
    out.push_back(words.empty() ? "" : ", " + words);
  }
  const auto distinct = [](const Texts& texts) {
    return std::set<std::string>(texts.begin(), texts.end()).size();
  };
  return distinct(out) < distinct(full) ? full : out;
}

/// Rows that share a text, by it.
std::map<std::string, Rows> sharing(const std::vector<std::string>& texts) {
  std::map<std::string, Rows> out;
  for (std::size_t i = 0; i < texts.size(); ++i) out[texts[i]].push_back(i);
  return out;
}

/// Appends to rows that share a text those keys that are needed and `wanted`.
template <class Wanted, class Words>
void tell_apart(std::vector<std::string>& texts, const std::vector<Keys>& all, const Wanted& wanted,
                const Words& words) {
  for (const auto& [shared, rows] : sharing(texts)) {
    if (rows.size() == 1) continue;
    std::vector<std::string> keys = varying(all, rows);
    std::erase_if(keys, [&](const std::string& key) { return !wanted(key); });
    keys = needed(std::move(keys), all, rows);
    if (keys.empty()) continue;
    const Texts more = words(keys, all, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) texts[rows[i]] += more[i];
  }
}

}  // namespace

std::vector<std::vector<std::size_t>> same_but_seed(const std::vector<ReportRow>& records) {
  std::vector<Rows> out;
  std::map<Keys, std::size_t> known;  // without seed -> place in out
  std::set<Keys> said;
  for (std::size_t i = 0; i < records.size(); ++i) {
    Keys keys = keys_of(records[i]);
    const bool fresh = said.insert(keys).second;
    drop_seeds(keys);
    const auto [place, first] = known.emplace(std::move(keys), out.size());
    if (first || !fresh) {
      out.push_back({i});
    } else {
      out[place->second].push_back(i);
    }
  }
  return out;
}

void name_rows(std::vector<ReportRow>& records, bool seeds) {
  std::vector<Keys> all;
  std::vector<std::string> names;
  for (const ReportRow& r : records) {
    all.push_back(keys_of(r));
    if (!seeds) drop_seeds(all.back());
    names.push_back(r.short_label());
  }
  const auto on_unit = [&](const auto&, const auto&, const Rows& rows) {
    Texts out;
    for (const std::size_t i : rows) out.push_back(" on " + short_unit(at(all[i], kUnit)));
    return out;
  };
  tell_apart(
      names, all, [](const std::string& key) { return key != kUnit && !is_detail(key); },
      unusual_words);
  for (std::size_t i = 0; i < records.size(); ++i) records[i].label = names[i];
  tell_apart(
      names, all, [](const std::string& key) { return key == kUnit; }, on_unit);
  tell_apart(names, all, is_detail, all_words);
  for (const auto& [shared, rows] : sharing(names)) {
    for (const std::size_t i : rows)
      if (rows.size() > 1) names[i] += fmt::format(" (row {})", records[i].position + 1);
  }

  // What tables show beside their columns: all keys that vary, then what else rows need.
  Rows every;
  std::vector<std::string> settings(records.size()), texts(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) every.push_back(i);
  std::vector<std::string> keys = varying(all, every);
  std::erase_if(keys, is_detail);
  for (const std::size_t i : every) {
    for (const std::string& key : keys) texts[i] += at(all[i], key) + '\n';
  }
  std::erase_if(keys, [&](const std::string& key) {
    Rows rows = every;
    std::erase_if(rows, [&](std::size_t i) { return is_moot(all[i], key); });
    return has_column(key) || std::all_of(rows.begin(), rows.end(), [&](std::size_t i) {
             return at(all[i], key) == at(all[rows.front()], key);
           });
  });
  for (const std::size_t i : every) texts[i] += words_of(keys, all, every, all[i]);
  std::vector<std::string> finer = texts;
  tell_apart(finer, all, is_detail, all_words);
  for (const std::size_t i : every) {
    records[i].name = names[i];
    records[i].settings = words_of(keys, all, every, all[i]);
    if (finer[i].size() > texts[i].size()) {
      const std::string more = finer[i].substr(texts[i].size() + 2);
      records[i].settings += (records[i].settings.empty() ? "" : ", ") + more;
    }
  }
}

}  // namespace numemu::experiments
