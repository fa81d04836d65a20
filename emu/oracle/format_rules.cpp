// Rules of decoding: codes read or written as another format, a fixed-point register a bit
// narrower.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/description/fields.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using unit::UnitDescription;
using FormatPointer = std::shared_ptr<const Format>;

/// Formats that read codes of this one differently: those of as many bits, and a bias one off.
std::vector<std::pair<std::string, FormatPointer>> siblings(const Format& own) {
  std::vector<std::pair<std::string, FormatPointer>> all;
  for (const Format* other : named_formats()) {
    if (other->bits == own.bits && other->name != own.name && other->kind != Kind::sign)
      all.emplace_back("as " + other->name, FormatPointer(FormatPointer(), other));
  }
  if (own.kind != Kind::floating) return all;
  for (const int off : {-1, 1}) {
    auto moved = std::make_shared<Format>(own);
    moved->bias += off;
    moved->name += fmt::format(".bias{}", moved->bias);
    all.emplace_back(fmt::format("with bias {} in place of {}", moved->bias, own.bias), moved);
  }
  return all;
}

bool same_shape(const Layout& x, const Layout& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Field& f, const Field& g) {
    return f.name == g.name && f.bits == g.bits && f.count == g.count;
  });
}

class FormatRules {
 public:
  explicit FormatRules(const Subject& s) : s_(s), layout_(layout_of(s)) {}

  std::vector<Rule> make() {
    if (s_.unit != nullptr) scales();
    operands();
    if (s_.unit == nullptr) {
      result();
    } else {
      c();
      registers();
    }
    return std::move(rules_);
  }

 private:
  /// The unit with `change` done to its description, or the operation, with these operands.
  /// `hold` keeps formats alive.
  template <class Change>
  void add(const char* family, std::string name, const Format* a, const Format* b,
           std::vector<FormatPointer> hold, const Change& change) {
    Subject theirs = s_;
    std::shared_ptr<const unit::Unit> unit;
    if (s_.unit == nullptr) {
      theirs.a = a;
      theirs.b = b;
    } else {
      UnitDescription u = *s_.unit->description();
      u.name = "rival";
      if (u.a != nullptr) u.a = a;
      if (u.b != nullptr) u.b = b;
      change(u);
      try {
        unit::check_description(u);
        unit = unit::make_unit(u);
        theirs = unit_subject(*unit, s_.k, a, b);
      } catch (const Error&) {
        return;
      }
    }
    if (!same_shape(layout_of(theirs), layout_)) return;
    rules_.push_back({.family = family,
                      .name = std::move(name),
                      .compute = [theirs, unit, hold](Records& r) { evaluate(theirs, r); }});
  }
  void add(std::string name, const Format* a, const Format* b, std::vector<FormatPointer> hold) {
    add("decoding", std::move(name), a, b, std::move(hold), [](UnitDescription&) {});
  }

  void operands() {
    const bool one = is_unary(s_.operation), alike = s_.a->name == s_.b->name;
    for (const auto& [how, format] : siblings(*s_.a)) {
      const Format* f = format.get();
      if (one || alike)
        add(one ? "operands decoded " + how : "A and B decoded " + how, f, f, {format});
      if (!one) add("A decoded " + how, f, s_.b, {format});
    }
    if (one) return;
    for (const auto& [how, format] : siblings(*s_.b))
      add("B decoded " + how, s_.a, format.get(), {format});
    if (!alike && s_.a->bits == s_.b->bits) add("formats of A and B exchanged", s_.b, s_.a, {});
  }

  /// Where C has not the same format.
  void result() {
    if (find_field(layout_, "c") >= 0) return;
    if (row_of(s_.operation).arithmetic == Arithmetic::comparison) return;
    for (const auto& [how, format] : siblings(*s_.to)) {
      Subject theirs = s_;
      theirs.to = format.get();
      rules_.push_back(
          {.family = "decoding",
           .name = "results written " + how,
           .compute = [theirs, hold = format](Records& records) { evaluate(theirs, records); }});
    }
  }

  void scales() {
    const Format* own = s_.unit->description()->scaling.format;
    if (own == nullptr) return;
    for (const auto& [how, format] : siblings(*own))
      add("scale", "scales decoded " + how, s_.a, s_.b, {format},
          [f = format.get()](UnitDescription& u) { u.scaling.format = f; });
  }

  void c() {
    const Format* own = s_.unit->c_format();
    if (own == nullptr) return;
    for (const auto& [how, format] : siblings(*own))
      add("decoding", "C decoded " + how, s_.a, s_.b, {format},
          [this, f = format.get()](UnitDescription& u) {
            u.d = s_.to;
            u.c = f;
          });
  }

  /// A two's complement register with a bit fewer at either end.
  void registers() {
    const UnitDescription& own = *s_.unit->description();
    const unit::Register& r = own.accumulator;
    if (r.format != nullptr || own.outer.every != 0) return;
    for (const int fraction : {0, 1}) {
      UnitDescription u = own;
      u.name = "rival";
      --u.accumulator.bits;
      u.accumulator.fraction -= fraction;
      if (u.accumulator.bits < 2 || u.accumulator.fraction < 0) continue;
      try {
        unit::check_description(u);
      } catch (const Error&) {
        continue;
      }
      const std::shared_ptr<const unit::Unit> narrow = unit::make_unit(u);
      Subject theirs = unit_subject(*narrow, s_.k, s_.a, s_.b);
      rules_.push_back(
          {.family = "register",
           .name = fraction != 0
                       ? fmt::format("the register keeps {} fraction bits instead of {}",
                                     r.fraction - 1, r.fraction)
                       : fmt::format("the register has {} bits instead of {}", r.bits - 1, r.bits),
           .compute = [theirs, narrow, fraction, bits = r.bits,
                       saturates = r.integer != unit::IntegerOverflow::wrap,
                       layout = layout_](Records& records) {
             const auto number = [](std::uint64_t code, int width) {
               return static_cast<std::int64_t>(code << (64 - width)) >> (64 - width);
             };
             const std::int64_t most = (std::int64_t{1} << (bits - 2)) - 1;
             const std::uint64_t mask = ~std::uint64_t{0} >> (64 - bits);
             for (std::uint64_t& c :
                  records.columns[static_cast<std::size_t>(find_field(layout, "c"))]) {
               std::int64_t held = number(c, bits) >> fraction;
               if (saturates) held = std::clamp(held, -most - 1, most);
               c = static_cast<std::uint64_t>(held) & mask >> 1;
             }
             evaluate(theirs, records);
             for (std::uint64_t& d :
                  records.columns[static_cast<std::size_t>(find_field(layout, "d"))])
               d = (static_cast<std::uint64_t>(number(d, bits - 1)) << fraction) & mask;
           }});
    }
  }

  const Subject& s_;
  const Layout layout_;
  std::vector<Rule> rules_;
};

}  // namespace

std::vector<Rule> format_rules(const Subject& s) { return FormatRules(s).make(); }

}  // namespace numemu::oracle
