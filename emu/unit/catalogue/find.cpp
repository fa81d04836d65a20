// Finds units by name: of the table, by a short form, with modifiers, described, or one's own.
#include "emu/unit/catalogue/find.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emu/unit/catalogue/modifiers.hpp"
#include "emu/unit/described_unit.hpp"
#include "emu/unit/operand.hpp"
#include "emu/unit/unit.hpp"
#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/interned.hpp"
#include "formats/suggest.hpp"

namespace numemu::unit {
namespace {

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t dot = text.find('.');
    parts.emplace_back(text.substr(0, dot));
    if (dot == text.npos) return parts;
    text.remove_prefix(dot + 1);
  }
}

/// The number after `head`, if that is all there is.
std::optional<int> number_after(std::string_view head, std::string_view text) {
  if (!text.starts_with(head) || text.size() == head.size()) return {};
  text.remove_prefix(head.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

struct Reader {
  std::string name;
  UnitDescription unit;
  bool rounding_given = false, overflow_given = false;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error("unit '" + name + "': " + what);
  }

  void head(const std::string& part) {
    if (part == "mac") return;
    if (part == "kahan") {
      unit.chain.kahan = true;
      return;
    }
    const auto chunk = number_after("chunk", part);
    constexpr int kLargestChunk = 1 << 20;
    if (!chunk || *chunk < 1 || *chunk > kLargestChunk)
      fail("'" + part + "': expected chunk1 to chunk" + std::to_string(kLargestChunk));
    unit.chain.chunk = *chunk;
  }

  void twos_complement(const std::string& part, int bits, int fraction) {
    constexpr int kNarrowest = 8, kWidest = 32;
    if (bits < kNarrowest || bits > kWidest || fraction < 0 || fraction >= bits)
      fail("'" + part + "': expected 8 to 32 bits, fewer of them right of the point");
    Register& r = unit.accumulator;
    r.bits = bits;
    r.fraction = fraction;
    r.integer = IntegerOverflow::saturate_each;
    unit.nan_code = 0;
  }

  void format(const std::string& part) {
    if (const auto bits = number_after("int", part)) return twos_complement(part, *bits, 0);
    const std::size_t point = part.find('q');
    if (part.starts_with("fixed") && point != part.npos) {
      const auto bits = number_after("fixed", part.substr(0, point));
      const auto fraction = number_after("q", part.substr(point));
      if (!bits || !fraction) fail("'" + part + "': expected fixedWqF, such as fixed24q12");
      return twos_complement(part, *bits, *fraction);
    }
    const Format& f = find_format(part);
    if (f.kind != Kind::floating || !f.is_signed || !f.has_zero())
      fail("'" + part + "': expected a signed floating format, intN or fixedWqF");
    unit.accumulator.format = unit.c = unit.d = &f;
    if (!container_of(f)) {
      if (!fits_float32(f))
        fail("'" + part + "': expected at most 16 bits or values that are float32 values");
      unit.c = unit.d = &find_format("float32");
    }
    unit.nan_code = unit.d->has_nan() ? unit.d->nan_code() : 0;
    unit.accumulator.overflow = Overflow::ieee;
  }

  /// sr8, sr8a: sr(8), sr(8,a).
  Rounding rounding(const std::string& part) const {
    if (!part.starts_with("sr")) return parse_rounding(part);
    const std::size_t letters = part.find_first_not_of("0123456789", 2);
    std::string text = "sr(" + part.substr(2, letters == part.npos ? letters : letters - 2);
    if (letters != part.npos) text += "," + part.substr(letters);
    return parse_rounding(text + ")");
  }

  void option(const std::string& part) {
    Register& r = unit.accumulator;
    if (part == "saturate" || part == "wrap") {
      if (overflow_given) fail("'" + part + "': expected one of saturate and wrap");
      overflow_given = true;
    } else {
      if (rounding_given) fail("'" + part + "': expected one rounding");
      rounding_given = true;
    }
    if (part == "saturate") {
      if (r.format != nullptr) r.overflow = Overflow::saturate;
      return;
    }
    if (part == "wrap") {
      if (r.format != nullptr) fail("'wrap': expected intN or fixedWqF before it");
      r.integer = IntegerOverflow::wrap;
      return;
    }
    r.rounding = rounding(part);
  }

  /// The canonical name: roundings and overflows that are not the default are written.
  std::string canonical(const std::string& head) const {
    const Register& r = unit.accumulator;
    std::string text = "neutral." + head + ".";
    if (r.format != nullptr) {
      text += r.format->name;
    } else if (r.fraction == 0) {
      text += "int" + std::to_string(r.bits);
    } else {
      text += "fixed" + std::to_string(r.bits) + "q" + std::to_string(r.fraction);
    }
    const bool whole = r.format == nullptr && r.fraction == 0;
    // Integer operands never round in integer registers: only an explicit rounding is in the name.
    if (!whole || !(r.rounding == Rounding{})) {
      std::string rounding;
      for (const char c : to_string(r.rounding)) {
        if (c != '(' && c != ')' && c != ',') rounding += c;
      }
      text += "." + rounding;
    }
    if (r.format == nullptr)
      text += r.integer == IntegerOverflow::wrap ? ".wrap" : ".saturate";
    else if (r.overflow == Overflow::saturate)
      text += ".saturate";
    return text;
  }
};

}  // namespace

std::optional<UnitDescription> parse_described(std::string_view name) {
  std::string text(name);
  constexpr std::string_view kIbm = "ibm.hfp8.chunk", kNeutral = "neutral.";
  if (text.starts_with(kIbm)) {
    const std::size_t end = std::min(text.find('.', kIbm.size()), text.size());
    const std::string chunk = text.substr(kIbm.rfind('.') + 1, end - kIbm.rfind('.') - 1);
    text = "neutral." + chunk + ".hfp16_e6m9" + text.substr(end);
  }
  if (!text.starts_with(kNeutral)) return {};
  std::vector<std::string> parts = parts_of(text);
  if (parts[1] != "mac" && parts[1] != "kahan" && !parts[1].starts_with("chunk")) return {};
  Reader reader{.name = std::string(name), .unit = {}};
  reader.unit.core = CoreKind::chain;
  reader.head(parts[1]);
  if (reader.unit.chain.chunk != 0)
    parts[1] = "chunk" + std::to_string(reader.unit.chain.chunk);  // without leading zeros
  if (parts.size() < 3) reader.fail("expected the register's format after " + parts[1]);
  reader.format(parts[2]);
  for (std::size_t i = 3; i < parts.size(); ++i) reader.option(parts[i]);
  reader.unit.name = reader.canonical(parts[1]);
  return reader.unit;
}

namespace {

/// A short form leaves out leading components but keeps two: "mma.f16.f32" for
/// "nvidia.a100.mma.f16.f32".
bool is_short_form(const std::string& name, std::string_view text) {
  return text.find('.') != text.npos && name.size() > text.size() && name.ends_with(text) &&
         name[name.size() - text.size() - 1] == '.';
}

/// Whether `name` contains the parts of `text` in their order: "vdpbf16ps", "v100.f16.f16".
bool parts_in_order(std::string_view name, std::string_view text) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('.'));
    for (;;) {
      if (name.empty()) return false;
      const std::string_view own = name.substr(0, name.find('.'));
      name.remove_prefix(std::min(own.size() + 1, name.size()));
      if (own == part) break;
    }
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return true;
}

/// The one unit among `units`, nullptr for none. Throws Error for several.
const Unit* only_one(std::string_view name, const std::vector<const Unit*>& units) {
  if (units.size() <= 1) return units.empty() ? nullptr : units.front();
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(units.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + units[i]->row().name;
  throw Error("unit '" + std::string(name) + "' is short for several: " + text +
              (units.size() > kShown ? "..." : ""));
}

/// By a whole name or an alias, the frequent case.
const Unit* named_exactly(std::string_view name) {
  static const auto names = [] {
    std::unordered_map<std::string_view, const Unit*> map;
    for (const Unit* unit : all_units()) {
      map.emplace(unit->row().name, unit);
      if (!unit->row().alias.empty()) map.emplace(unit->row().alias, unit);
    }
    return map;
  }();
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

/// The unit of the tables with that name, alias or short form. Names that only omit leading parts
/// have priority.
const Unit* in_tables(std::string_view name) {
  if (const Unit* unit = named_exactly(name)) return unit;
  std::vector<const Unit*> endings, others;
  for (const Unit* unit : all_units()) {
    const std::string& own = unit->row().name;
    if (is_short_form(own, name)) endings.push_back(unit);
    if (!name.empty() && !name.starts_with('.') && parts_in_order(own, name))
      others.push_back(unit);
  }
  return only_one(name, endings.empty() ? others : endings);
}

/// Names and their short forms, for the nearest of them.
std::vector<std::string> known_names() {
  std::vector<std::string> known;
  for (const Unit* unit : all_units()) {
    const UnitRow& row = unit->row();
    known.push_back(row.name);
    if (!row.alias.empty()) known.push_back(row.alias);
    for (std::size_t dot = row.name.find('.'); dot != row.name.npos;
         dot = row.name.find('.', dot + 1)) {
      const std::string ending = row.name.substr(dot + 1);
      if (ending.find('.') != ending.npos) known.push_back(ending);
    }
  }
  return known;
}

/// The unit whose register a format is: who gives a format for a unit wants its arithmetic. Empty
/// where the name is of no format that a register can have.
std::string accumulator_of_format(std::string_view name) {
  try {
    const Format& f = find_format(name);
    if (f.kind != Kind::floating || !f.is_signed || !f.has_zero()) return "";
    return f.name == "float32" ? "f32.sequential" : "neutral.mac." + f.name;
  } catch (const Error&) {
    return "";
  }
}

/// The message for an unknown name: a format, the name it misspells, else units that share most of
/// its parts.
std::string unknown_unit(std::string_view name) {
  constexpr std::size_t kShown = 4, kLongest = 80;
  if (const std::string own = accumulator_of_format(name); !own.empty())
    return fmt::format("unknown unit '{}', a format; did you mean '{}' or 'exact'?", name, own);
  const std::vector<std::string> known = known_names();
  if (suggested_name(name, known)) return unknown_name("unit", name, known);
  std::size_t most = 0, found = 0;
  std::string near;
  for (const Unit* unit : all_units()) {
    std::size_t shared = 0;
    std::string_view rest = name.substr(0, kLongest);
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find('.'));
      shared += !part.empty() && parts_in_order(unit->row().name, part);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    if (shared == 0 || shared < most) continue;
    if (shared > most) {
      most = shared;
      found = 0;
      near.clear();
    }
    if (++found <= kShown) near += (found == 1 ? "" : ", ") + unit->row().name;
  }
  if (found == 0) return unknown_name("unit", name, known);
  return fmt::format("unknown unit '{}'; near: {}{}", name, near, found > kShown ? "..." : "");
}

bool takes(const Unit& unit, const std::string& modifier) {
  for (const std::string& one : unit.row().modifiers) {
    if (one == modifier) return true;
  }
  return false;
}

/// Grades are in the order of their strength; a definition has no evidence to weaken.
Grade weaker(Grade a, Grade b) { return std::max(a, b); }

std::unique_ptr<Unit> modified(const Unit& base, const std::vector<const Modifier*>& modifiers) {
  UnitDescription u = *base.description();
  UnitRow about = base.row();
  for (const Modifier* modifier : modifiers) {
    modifier->apply(u);
    u.name += "." + modifier->name;
    about.grade =
        modifier == modifiers.front() ? modifier->grade : weaker(about.grade, modifier->grade);
    about.source = modifier->what + "; otherwise: " + about.source;
  }
  about.modifiers.clear();
  about.alias.clear();
  return described_unit(std::move(u), std::move(about));
}

/// A unit whose name ends with modifiers; nullptr where it does not.
std::unique_ptr<Unit> with_modifiers_of(std::string_view name) {
  std::vector<const Modifier*> modifiers;
  std::string_view rest = name;
  for (;;) {
    const std::size_t dot = rest.rfind('.');
    if (dot == rest.npos) break;
    const Modifier* modifier = find_modifier(rest.substr(dot + 1));
    if (modifier == nullptr) break;
    modifiers.push_back(modifier);
    rest = rest.substr(0, dot);
  }
  if (modifiers.empty()) return nullptr;
  // One unit, one name: in the order of the table.
  std::sort(modifiers.begin(), modifiers.end());
  if (std::adjacent_find(modifiers.begin(), modifiers.end()) != modifiers.end())
    throw Error("unit '" + std::string(name) + "': expected each modifier once");
  const auto given = [&](std::string_view one) {
    return std::ranges::any_of(modifiers, [&](const Modifier* m) { return m->name == one; });
  };
  if (given("leeds") && given("mmasim"))
    throw Error("unit '" + std::string(name) + "': expected one of leeds and mmasim, not both");
  const Unit* base = in_tables(rest);
  if (base == nullptr) return nullptr;
  for (const Modifier* modifier : modifiers) {
    if (takes(*base, modifier->name)) continue;
    std::string known;
    for (const std::string& one : base->row().modifiers) known += (known.empty() ? "" : ", ") + one;
    throw Error("unit " + base->row().name + " has no modifier '" + modifier->name + "' (it has " +
                (known.empty() ? "none" : known) + ")");
  }
  return modified(*base, modifiers);
}

/// Units made on demand, by canonical name.
const Unit& keep(std::unique_ptr<Unit> unit) {
  return Interned::find<Unit>(unit->row().name, [&] { return std::move(unit); });
}

std::unique_ptr<Unit> from_name(std::string_view name) {
  auto described = parse_described(name);
  if (!described) described = parse_described("neutral." + std::string(name));  // its short form
  if (!described) return nullptr;
  check_description(*described);
  UnitRow about;
  about.grade = Grade::definition;
  about.source = "described by its name";
  return described_unit(std::move(*described), std::move(about));
}

}  // namespace

std::vector<const Unit*> units_like(std::string_view pattern) {
  const bool wild = pattern.find_first_of("*?") != pattern.npos;
  std::vector<const Unit*> units;
  if (pattern.empty() || pattern.starts_with('.')) return units;
  for (const Unit* unit : all_units()) {
    const std::string& name = unit->row().name;
    if (wild ? glob_match(pattern, name) : parts_in_order(name, pattern)) units.push_back(unit);
  }
  return units;
}

namespace {

const Unit* search(std::string_view name) {
  if (const Unit* unit = in_tables(name)) return unit;
  if (auto unit = with_modifiers_of(name)) return &keep(std::move(unit));
  if (auto unit = from_name(name)) return &keep(std::move(unit));
  return nullptr;
}

}  // namespace

const Unit* known_unit(std::string_view name) {
  // A short form is held against every name, which takes longer than a small product.
  constexpr std::size_t kMostNames = 1000;
  static std::mutex mutex;
  static std::map<std::string, const Unit*, std::less<>> found;
  {
    const std::lock_guard lock(mutex);
    if (const auto at = found.find(name); at != found.end()) return at->second;
  }
  const Unit* const unit = search(name);
  const std::lock_guard lock(mutex);
  if (unit != nullptr && found.size() < kMostNames) found.emplace(name, unit);
  return unit;
}

const Unit& find_unit(std::string_view name) {
  if (const Unit* unit = known_unit(name)) return *unit;
  throw Error(unknown_unit(name));
}

std::vector<const Unit*> with_modifiers(const Unit& unit) {
  std::vector<const Unit*> units{&unit};
  for (const std::string& modifier : unit.row().modifiers)
    units.push_back(&find_unit(unit.row().name + "." + modifier));
  return units;
}

std::unique_ptr<Unit> make_unit(UnitDescription description) {
  check_description(description);
  for (const Unit* known : all_units()) {
    if (known->row().name == description.name)
      throw Error("unit " + description.name +
                  ": name: expected one that no unit of the catalogue has");
  }
  UnitRow about;
  about.grade = Grade::described_by_you;
  about.source = "a description, nothing to compare with";
  return described_unit(std::move(description), std::move(about));
}

}  // namespace numemu::unit
