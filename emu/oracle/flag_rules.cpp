// Rules of exception flags alone: what results raise besides, or fail to raise.
// Cold: a negligible share of any run (docs/build.md).
#include <fmt/format.h>

#include <bit>
#include <utility>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {
namespace {

/// What flags are made from.
struct Raised {
  std::uint64_t flags = 0, code = 0;
  bool signalling = false, any_nan = false;  ///< among the operands
  Value exact;
  const Format* to = nullptr;
};
using Flags = std::uint64_t (*)(const Raised&);

std::uint64_t with_underflow(const Raised& r, bool tiny) {
  const bool raised = tiny && (r.flags & kInexact) != 0;
  return (r.flags & ~std::uint64_t{kUnderflow}) | (raised ? kUnderflow : 0);
}

constexpr std::pair<const char*, Flags> kRules[] = {
    {"tininess is detected before rounding",
     [](const Raised& r) { return with_underflow(r, is_subnormal(*r.to, r.exact)); }},
    {"tininess is read from the rounded result",
     [](const Raised& r) {
       const Value v = decode(*r.to, r.code);
       return with_underflow(r, v.kind == Class::zero || is_subnormal(*r.to, v));
     }},
    {"UF is raised by exact subnormal results, too",
     [](const Raised& r) {
       return r.flags | (is_subnormal(*r.to, decode(*r.to, r.code)) ? kUnderflow : 0);
     }},
    {"NV is raised by quiet NaN operands, too",
     [](const Raised& r) { return r.flags | (r.any_nan ? kInvalid : 0); }},
    {"NV is raised by signalling NaN operands alone",
     [](const Raised& r) { return r.signalling ? r.flags : r.flags & ~std::uint64_t{kInvalid}; }},
    {"NV is not raised where an operand is a quiet NaN",
     [](const Raised& r) {
       return r.any_nan && !r.signalling ? r.flags & ~std::uint64_t{kInvalid} : r.flags;
     }},
    {"NX is not raised with OF",
     [](const Raised& r) {
       return (r.flags & kOverflow) != 0 ? r.flags & ~std::uint64_t{kInexact} : r.flags;
     }},
    {"NX is not raised with UF",
     [](const Raised& r) {
       return (r.flags & kUnderflow) != 0 ? r.flags & ~std::uint64_t{kInexact} : r.flags;
     }},
};

/// Quiet NaN in place of signalling ones.
void quiet(const Layout& layout, Records& records) {
  for (std::size_t f = 0; f < layout.size(); ++f) {
    const Format* format = layout[f].format;
    if (layout[f].result || format == nullptr || format->mantissa_bits < 2) continue;
    for (std::uint64_t& code : records.columns[f]) {
      if (is_signalling(decode(*format, code)))
        code |= std::uint64_t{1} << (format->mantissa_bits - 1);
    }
  }
}

void look_at_operands(const Layout& layout, const Records& records, std::int64_t i, Raised& r) {
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (layout[f].result || layout[f].format == nullptr) continue;
    for (std::int64_t e = 0; e < layout[f].count; ++e) {
      const Value v =
          decode(*layout[f].format, records.code(static_cast<int>(f), i * layout[f].count + e));
      r.any_nan |= v.kind == Class::nan;
      r.signalling |= is_signalling(v);
    }
  }
}

}  // namespace

std::vector<Rule> flag_rules(const Subject& s) {
  std::vector<Rule> rules;
  const Layout layout = layout_of(s);
  const int field = find_field(layout, "flags");
  if (field < 0) return rules;
  const auto at = static_cast<std::size_t>(field);
  const auto add = [&](std::string name, Rule::Change results, Rule::Change inputs = {}) {
    rules.push_back({.family = "flags",
                     .name = std::move(name),
                     .inputs = std::move(inputs),
                     .results = std::move(results)});
  };
  const auto masked = [&](std::string name, std::uint64_t lost) {
    add(std::move(name), [at, lost](Records& records, const Sample&) {
      for (std::uint64_t& flags : records.columns[at]) flags &= ~lost;
    });
  };
  // Of a conversion nothing else raises NV: the narrower rule comes first.
  add("NV is not raised by signalling NaN operands", {},
      [layout](Records& records, const Sample&) { quiet(layout, records); });
  masked("flags never raised", ~std::uint64_t{0});
  for (const auto& [name, flag] : {std::pair("NX", kInexact),
                                   {"UF", kUnderflow},
                                   {"OF", kOverflow},
                                   {"DZ", kDivideByZero},
                                   {"NV", kInvalid}}) {
    masked(fmt::format("{} never raised", name), flag);
    add(fmt::format("{} always raised", name), [at, flag = flag](Records& records, const Sample&) {
      for (std::uint64_t& flags : records.columns[at]) flags |= flag;
    });
  }
  add("flags are those of the right results",
      [at](Records& records, const Sample& sample) { records.columns[at] = sample.want_flags; });
  const int d = find_field(layout, s.unit != nullptr ? "d" : "out");
  for (const auto& [name, rule] : kRules) {
    add(name, [s, layout, at, d, rule = rule](Records& records, const Sample&) {
      ExactSum sum(s, layout);
      for (std::int64_t i = 0; i < records.size; ++i) {
        std::uint64_t& flags = records.columns[at][static_cast<std::size_t>(i)];
        Raised r{.flags = flags,
                 .code = records.code(d, i),
                 .exact = sum.of(records, i).value,
                 .to = s.to};
        look_at_operands(layout, records, i, r);
        flags = rule(r);
      }
    });
  }
  add("flags of the record before", [s, at](Records& records, const Sample& sample) {
    Records earlier = sample.before;
    evaluate(s, earlier);
    for (std::size_t i = 0; i < sample.number.size(); ++i)
      records.columns[at][i] =
          sample.number[i] == 0 ? sample.records.columns[at][i] : earlier.columns[at][i];
  });
  add("flags are not cleared: those of the records before stay",
      [at](Records& records, const Sample& sample) {
        for (std::size_t i = 0; i < sample.number.size(); ++i)
          records.columns[at][i] |= sample.before.columns[at][i];
      });
  return rules;
}

}  // namespace numemu::oracle
