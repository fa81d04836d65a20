#include "emu/oracle/subject.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "emu/unit/description/json.hpp"
#include "emu/unit/integer/requantize.hpp"
#include "emu/unit/sparse/pattern.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "formats/suggest.hpp"

namespace numemu::oracle {

namespace {

constexpr std::string_view kKey = " description=";
constexpr std::size_t kLongest = 3000;

}  // namespace

std::string description_word(const unit::Unit& unit) {
  const unit::UnitDescription& u = *unit.description();
  if (unit.row().grade != unit::Grade::described_by_you || u.products != nullptr) return "";
  const std::string text = Json::parse(unit::description_json(u)).dump();
  const bool blank = text.find_first_of(" \t") != std::string::npos;
  return blank || text.size() > kLongest ? "" : std::string(kKey) + text;
}

std::string_view described_in(std::string_view header) {
  const std::size_t at = header.find(kKey);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + kKey.size());
  return header.substr(0, header.find_first_of(" \t\r"));
}

namespace {

/// Names with blanks would be several words of the first line.
void require_one_word(std::string_view name) {
  if (name.find_first_of(" \t") != std::string_view::npos)
    throw Error(fmt::format("{}: expected a name without blanks in a file of vectors", name));
}

void require_depth(std::string_view who, std::int64_t k) {
  if (k < 1 || k > kMostProducts)
    throw Error(fmt::format("{}: k: expected 1 to {}, found {}", who, kMostProducts, k));
}

std::string from_text(const Subject& s) {
  return s.a == s.b ? s.a->name : s.a->name + "," + s.b->name;
}

std::string result_name(const Subject& s) {
  return s.to != nullptr ? s.to->name : s.unit->row().result;
}

template <class T>
T parse_whole(std::string_view key, std::string_view text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end)
    throw Error(fmt::format("{}: expected a whole number, found '{}'", key, text));
  return value;
}

using Entries = std::map<std::string, std::string, std::less<>>;

/// The words key=value behind the version.
Entries entries_of(std::string_view line) {
  static const std::vector<std::string> known = {
      "unit",  "op", "from",  "to",          "rounding",   "overflow", "seed",
      "level", "k",  "style", "description", "requantize", "low",      "high"};
  if (!is_header(line)) throw Error(fmt::format("expected '{}1 ...'", kHeaderBegin));
  line.remove_prefix(kHeaderBegin.size());
  Entries entries;
  bool version = true;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (word.empty()) continue;
    if (std::exchange(version, false)) {
      if (word != "1")
        throw Error(fmt::format("numemu-vectors: expected version 1, found '{}'", word));
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      throw Error(fmt::format("expected key=value, found '{}'", word));
    const std::string key(word.substr(0, equals));
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Error(unknown_name("key", key, known));
    if (!entries.emplace(key, word.substr(equals + 1)).second)
      throw Error(fmt::format("{}: expected once, found twice", key));
  }
  return entries;
}

const std::string& required(const Entries& entries, std::string_view key) {
  const auto found = entries.find(key);
  if (found == entries.end()) throw Error(fmt::format("expected {}=, found none", key));
  return found->second;
}

std::string optional(const Entries& entries, std::string_view key, std::string_view otherwise) {
  const auto found = entries.find(key);
  return found == entries.end() ? std::string(otherwise) : found->second;
}

/// Both formats of "F" or "F,G"; names such as codebook(...) have no comma outside parentheses.
std::pair<const Format*, const Format*> parse_from(std::string_view text) {
  const std::size_t comma = text.find(',');
  const Format& a = find_format(text.substr(0, comma));
  return {&a, comma == std::string_view::npos ? &a : &find_format(text.substr(comma + 1))};
}

/// The unit that the header names, one of the catalogue.
const unit::Unit& named_unit(const Entries& entries) {
  const std::string name = required(entries, "unit");
  try {
    return unit::find_unit(name);
  } catch (const Error& error) {
    throw Error(std::string(error.what()) + "; if it is yours, give its description FILE.json",
                error.kind());
  }
}

Subject parse_unit(const Entries& entries, const unit::Unit* told) {
  const unit::Unit& unit = told != nullptr ? *told : named_unit(entries);
  const unit::UnitDescription* u = unit.description();
  const std::string from = optional(entries, "from", "");
  const auto [a, b] = from.empty() ? std::pair<const Format*, const Format*>{} : parse_from(from);
  const auto k = parse_whole<std::int64_t>("k", optional(entries, "k", "0"));
  if (entries.contains("k")) require_depth("unit " + unit.row().name, k);
  Subject s = unit_subject(unit, k, a, b);
  if (const std::string how = optional(entries, "requantize", ""); !how.empty()) {
    const auto end = [&](const char* key) {
      const std::string text = optional(entries, key, "");
      return text.empty() ? std::nullopt : std::optional(parse_whole<std::int64_t>(key, text));
    };
    s = codes_subject(s, unit::parse_requantization(how), find_format(required(entries, "to")),
                      end("low"), end("high"));
  }
  for (const auto& [key, own] : {std::pair<std::string_view, std::string>{"to", result_name(s)},
                                 {"rounding", to_string(unit::result_register(*u).rounding)},
                                 {"overflow", to_string(unit::result_register(*u).overflow)}}) {
    const std::string found = optional(entries, key, own);
    if (found != own)
      throw Error(fmt::format("{}: expected {}, the {} of unit {}, found {}", key, own,
                              key == "to" ? "result" : key, unit.row().name, found));
  }
  return s;
}

}  // namespace

const Format& usual_result(Operation operation, const Format& from) {
  if (row_of(operation).arithmetic != Arithmetic::comparison) return from;
  static const Format& bit = find_format("uint1");
  return bit;
}

Subject operation_subject(Operation operation, const Format& from, const Format& to,
                          const Rounding& rounding, Overflow overflow, std::int64_t k) {
  Subject s{operation, nullptr, &from, &from, &to, rounding, overflow, k};
  for (const Format* format : {&from, &to}) {
    require_one_word(format->name);
    if (operation != Operation::convert && format->kind == Kind::codebook)
      throw Error(
          fmt::format("{} of {}: expected a format of numbers with an exponent, or integers",
                      to_string(operation), format->name));
  }
  require_depth(to_string(operation), k);
  const OperationRow& row = row_of(operation);
  if (row.arithmetic == Arithmetic::comparison && !(to == usual_result(operation, from)))
    throw Error(fmt::format("{} to {}: expected uint1, 0 or 1", row.name, to.name));
  if (operation == Operation::to_integer && to.kind != Kind::integer)
    throw Error(fmt::format("{} to {}: expected an integer format", row.name, to.name));
  // encode() rounds a result of 64 bits and a sticky bit once if they suffice.
  constexpr int kSignificand = 64, kGuard = 3;
  const bool exact = row.arithmetic == Arithmetic::number || row.arithmetic == Arithmetic::choice ||
                     row.arithmetic == Arithmetic::comparison;
  const int kept = to.kind == Kind::integer ? to.bits : to.mantissa_bits;
  const int room = kSignificand - kGuard - kept;
  if (!exact && room < 0)
    throw Error(fmt::format("{} to {}: expected a result of at most {} bits", row.name, to.name,
                            kSignificand - kGuard));
  if (!exact && rounding.random_bits > room)
    throw Error(fmt::format("{} to {}: expected at most {} random bits, found {}", row.name,
                            to.name, room, rounding.random_bits));
  return s;
}

std::int64_t usual_depth(const unit::UnitDescription& u) {
  constexpr std::int64_t kUsual = 32;
  const std::int64_t products = u.k != 0 ? u.k : std::max<std::int64_t>(u.group, kUsual);
  if (u.sparsity.dense()) return products;
  const std::int64_t groups = (products + u.sparsity.kept - 1) / u.sparsity.kept;
  return groups * u.sparsity.group;
}

Subject unit_subject(const unit::Unit& unit, std::int64_t k, const Format* a, const Format* b) {
  const unit::UnitDescription* u = unit.description();
  const std::string& name = unit.row().name;
  if (u == nullptr)
    throw Error(fmt::format("unit {}: no vectors: its results are not reproducible", name));
  a = a != nullptr ? a : u->a;
  b = b != nullptr ? b : u->b != nullptr ? u->b : a;
  a = a != nullptr ? a : b;
  if (a == nullptr) throw Error(fmt::format("unit {}: expected a format: it takes any", name));
  unit.require_operands(*a, *b);
  require_one_word(a->name + b->name);
  if (k == 0) k = usual_depth(*u);
  require_depth("unit " + name, k);
  if (!u->sparsity.dense() && k % u->sparsity.group != 0)
    throw Error(fmt::format("unit {}: k: expected a multiple of {} ({}:{}), found {}", name,
                            u->sparsity.group, u->sparsity.kept, u->sparsity.group, k));
  return {Operation::unit,
          &unit,
          a,
          b,
          unit.d_format(),
          unit::result_register(*u).rounding,
          unit::result_register(*u).overflow,
          k};
}

Subject codes_subject(Subject s, unit::Requantization how, const Format& to,
                      std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  if (s.unit == nullptr || !unit::gives_int32(*s.unit))
    throw Error(fmt::format("requantize: expected a unit with int32 results{}",
                            s.unit == nullptr ? ""
                                              : fmt::format(", {} gives {}", s.unit->row().name,
                                                            s.unit->row().result)));
  if (to.kind != Kind::integer || to.bits > 16)
    throw Error(
        fmt::format("requantize: expected codes that are integers of at most 16 bits, "
                    "found {}",
                    to.name));
  const auto [least, most] = unit::ends_of_integers(to);
  const std::int64_t from = low.value_or(least), last = high.value_or(most);
  if (from < least || last > most || from > last)
    throw Error(fmt::format("low, high: expected numbers of {} in order, {} to {}, found {} and {}",
                            to.name, least, most, from, last));
  s.to = &to;
  s.codes = CodesOfSums{how, static_cast<std::int32_t>(from), static_cast<std::int32_t>(last)};
  return s;
}

std::string header_line(const Subject& s) {
  std::string line(kHeaderBegin);
  line += s.unit != nullptr ? "1 unit=" + s.unit->row().name
                            : fmt::format("1 op={}", to_string(s.operation));
  line +=
      fmt::format(" from={} to={} rounding={} overflow={} seed={} level={}", from_text(s),
                  result_name(s), to_string(s.rounding), to_string(s.overflow), s.seed, s.level);
  if (s.unit != nullptr || s.operation == Operation::dot) line += fmt::format(" k={}", s.k);
  if (s.codes)
    line += fmt::format(" requantize={} low={} high={}", unit::row_of(s.codes->how).name,
                        s.codes->low, s.codes->high);
  line += " style=" + s.style;
  return s.unit != nullptr ? line + description_word(*s.unit) : line;
}

Subject parse_header(std::string_view line, const unit::Unit* told) {
  const Entries entries = entries_of(line);
  if (entries.contains("unit") == entries.contains("op"))
    throw Error("expected unit= or op=, one of them");
  for (const char* key : {"low", "high", "requantize"}) {
    if (entries.contains(key) && (entries.contains("op") || !entries.contains("requantize")))
      throw Error(fmt::format("{}: expected with unit= and requantize= alone", key));
  }
  Subject s;
  if (entries.contains("unit")) {
    s = parse_unit(entries, told);
  } else {
    const Operation operation = parse_operation(required(entries, "op"));
    const Format& from = find_format(required(entries, "from"));
    const std::string result = optional(entries, "to", "");
    const Format& to = result.empty() ? usual_result(operation, from) : find_format(result);
    const Rounding rounding = parse_rounding(required(entries, "rounding"));
    const Overflow overflow = parse_overflow(required(entries, "overflow"));
    const auto k = parse_whole<std::int64_t>("k", optional(entries, "k", "1"));
    s = operation_subject(operation, from, to, rounding, overflow, k);
  }
  s.seed = parse_whole<std::uint64_t>("seed", optional(entries, "seed", "0"));
  s.level = parse_whole<int>("level", optional(entries, "level", "1"));
  s.style = optional(entries, "style", "mixed");
  return s;
}

}  // namespace numemu::oracle
