// Reads the names of described accumulators, part by part.
// Cold: a negligible share of any run (docs/build.md).
#include "emu/unit/catalogue/described.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "emu/unit/operand.hpp"
#include "formats/error.hpp"

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

}  // namespace numemu::unit
