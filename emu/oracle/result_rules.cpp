// Rules of results that are right until the last moment, and of exception flags alone.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <memory>
#include <utility>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/unit/reference/register.hpp"
#include "formats/codec.hpp"
#include "formats/value.hpp"

namespace numemu::oracle {
namespace {

/// Of the first `count` records nobody knows what was before them: they are no evidence.
void leave_first(int count, const Layout& layout, Records& records, const Sample& sample) {
  for (std::int64_t i = 0; i < records.size; ++i) {
    if (sample.number[static_cast<std::size_t>(i)] >= count) continue;
    for (std::size_t f = 0; f < layout.size(); ++f) {
      if (layout[f].result)
        records.columns[f][static_cast<std::size_t>(i)] =
            sample.records.code(static_cast<int>(f), i);
    }
  }
}

/// c + d for every record, rounded as the subject rounds, or modulo 2^bits.
void add_to(const Subject& s, const Field& field, std::vector<std::uint64_t>& c,
            const std::vector<std::uint64_t>& d) {
  if (field.format == nullptr) {
    const std::uint64_t mask = ~std::uint64_t{0} >> (64 - field.bits);
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = (c[i] + d[i]) & mask;
    return;
  }
  const Rounding rounding = s.rounding.stochastic() ? Rounding{} : s.rounding;
  const Subject sum =
      operation_subject(Operation::add, *field.format, *field.format, rounding, s.overflow);
  const Layout layout = layout_of(sum);
  Records records(layout, std::ssize(c));
  records.columns[0] = c;
  records.columns[1] = d;
  evaluate(sum, records);
  c = records.columns[static_cast<std::size_t>(find_field(layout, "out"))];
}

}  // namespace

std::vector<Rule> stream_rules(const Subject& s) {
  std::vector<Rule> rules;
  const Layout layout = layout_of(s);
  const auto add = [&](const char* family, std::string name, Rule::Change inputs, int late = 1) {
    rules.push_back({.family = family,
                     .name = std::move(name),
                     .inputs = std::move(inputs),
                     .results = [layout, late](Records& records, const Sample& sample) {
                       leave_first(late, layout, records, sample);
                     }});
  };
  const auto earlier = [&](std::vector<std::size_t> fields) {
    return [fields = std::move(fields)](Records& records, const Sample& sample) {
      for (const std::size_t f : fields) records.columns[f] = sample.before.columns[f];
    };
  };
  static constexpr std::array<std::pair<std::string_view, const char*>, 14> kNames = {
      {{"a", "A"},
       {"b", "B"},
       {"c", "C"},
       {"sa", "scales of A"},
       {"sb", "scales of B"},
       {"e", "metadata"},
       {"r", "random bits"},
       {"random", "random bits"},
       {"in", "operand"},
       {"bias", "bias"},
       {"factor", "factor"},
       {"multiplier", "multiplier"},
       {"shift", "shift"},
       {"zero_point", "zero point"}}};
  std::vector<std::size_t> all;
  for (std::size_t f = 0; f < layout.size(); ++f) {
    if (!layout[f].result) all.push_back(f);
  }
  add("latency", s.unit != nullptr ? "D of the record before" : "result of the record before",
      earlier(all));
  add(
      "latency", fmt::format("{} of two records before", s.unit != nullptr ? "D" : "result"),
      [all](Records& records, const Sample& sample) {
        for (const std::size_t f : all) records.columns[f] = sample.earlier.columns[f];
      },
      2);
  for (const std::size_t f : all) {
    if (all.size() == 1) break;
    for (const auto& [name, words] : kNames) {
      if (layout[f].name == name)
        add("latency", fmt::format("{} of the record before", words), earlier({f}));
    }
  }
  const int c = find_field(layout, "c"), d = find_field(layout, s.unit != nullptr ? "d" : "out");
  if (c < 0) return rules;
  const auto at = static_cast<std::size_t>(c), from = static_cast<std::size_t>(d);
  const Field field = layout[at];
  if (field.bits != layout[from].bits || field.format != layout[from].format) return rules;
  add("accumulator", "the accumulator is not loaded: D of the record before in place of C",
      [at, from](Records& records, const Sample& sample) {
        records.columns[at] = sample.before.columns[from];
      });
  add("accumulator", "the accumulator is not cleared: D of the record before added to C",
      [s, field, at, from](Records& records, const Sample& sample) {
        add_to(s, field, records.columns[at], sample.before.columns[from]);
      });
  return rules;
}

namespace {

/// Codes of the largest number and of the lowest, and their neighbours.
struct Ends {
  std::uint64_t largest, below_largest, lowest, above_lowest;
};

Ends ends_of(const Field& f) {
  if (f.format == nullptr) {
    const std::uint64_t sign = std::uint64_t{1} << (f.bits - 1);
    return {sign - 1, sign - 2, sign, sign + 1};
  }
  const std::uint64_t largest = f.format->largest_code(), lowest = f.format->largest_code(true);
  if (f.format->kind == Kind::integer) return {largest, largest - 1, lowest, lowest + 1};
  return {largest, largest - 1, lowest, lowest - 1};
}

/// Registers that saturate one early at each write, which later additions go on from.
void add_short_ends(const Subject& s, std::vector<Rule>& rules) {
  const unit::UnitDescription& u = *s.unit->description();
  const auto saturates = [](const unit::Register& r) {
    return r.format != nullptr ? r.overflow == Overflow::saturate
                               : r.integer != unit::IntegerOverflow::wrap;
  };
  if (!saturates(u.accumulator) && !saturates(unit::result_register(u))) return;
  for (const auto& [name, ends] :
       {std::pair("the register saturates at the number below its largest",
                  unit::ShortEnds{.lowest = false, .largest = true}),
        {"the register saturates at the number above its lowest",
         unit::ShortEnds{.lowest = true, .largest = false}},
        {"the register saturates at the neighbours of both ends",
         unit::ShortEnds{.lowest = true, .largest = true}}})
    rules.push_back({.family = "saturation", .name = name, .compute = [s, ends = ends](Records& r) {
                       evaluate(s, r, &ends);
                     }});
}

/// Subnormal results without their sign, also of a unit that flushes them to zeros of their sign.
void add_flush_to_plus_zero(const Subject& s, const Layout& layout, int field,
                            std::vector<Rule>& rules) {
  const Format* const format = layout[static_cast<std::size_t>(field)].format;
  if (format == nullptr || format->kind != Kind::floating || format->mantissa_bits == 0 ||
      format->field_zero != FieldZero::subnormal || !format->has_negative_zero())
    return;
  Rule rule{.family = "flush", .name = "subnormal results become plus zero"};
  if (s.unit != nullptr && s.unit->description()->subnormals.flush_results) {
    unit::UnitDescription u = *s.unit->description();
    u.name = "rival";
    u.subnormals.flush_results = u.subnormals.tiny_before_rounding = false;
    const std::shared_ptr<const unit::Unit> writes = unit::make_unit(u);
    const Subject theirs = unit_subject(*writes, s.k, s.a, s.b);
    rule.compute = [theirs, writes](Records& records) { evaluate(theirs, records); };
  }
  rule.results = [format, d = static_cast<std::size_t>(field), flags = find_field(layout, "flags")](
                     Records& records, const Sample&) {
    for (std::size_t i = 0; i < records.columns[d].size(); ++i) {
      std::uint64_t& code = records.columns[d][i];
      const std::uint64_t magnitude = code & ~format->sign_bit();
      if (magnitude == 0 || magnitude >> format->mantissa_bits != 0) continue;
      code = 0;
      if (flags >= 0) records.columns[static_cast<std::size_t>(flags)][i] |= kUnderflow | kInexact;
    }
  };
  rules.push_back(std::move(rule));
}

bool is_nan(const Field& f, std::uint64_t code) {
  return f.format != nullptr && decode(*f.format, code).kind == Class::nan;
}

}  // namespace

std::vector<Rule> result_rules(const Subject& s) {
  std::vector<Rule> rules;
  const Layout layout = layout_of(s);
  const int field = find_field(layout, s.unit != nullptr ? "d" : "out");
  const Field f = layout[static_cast<std::size_t>(field)];
  const auto add = [&](const char* family, std::string name,
                       std::function<std::uint64_t(std::uint64_t)> change) {
    rules.push_back({.family = family,
                     .name = std::move(name),
                     .results = [field, change = std::move(change)](Records& r, const Sample&) {
                       for (std::uint64_t& code : r.columns[static_cast<std::size_t>(field)])
                         code = change(code);
                     }});
  };
  if (f.format != nullptr && f.format->has_negative_zero())
    add("zero", "-0 becomes +0", [f](std::uint64_t code) { return plus_zero(f, code); });
  add_flush_to_plus_zero(s, layout, field, rules);
  const bool is_signed = f.format == nullptr || f.format->is_signed;
  if (f.bits > 2) {
    const Ends e = ends_of(f);
    const auto top = [e](std::uint64_t code) { return code == e.largest ? e.below_largest : code; };
    const auto bottom = [e](std::uint64_t code) {
      return code == e.lowest ? e.above_lowest : code;
    };
    add("saturation", "the largest number becomes the one below it", top);
    if (is_signed) {
      add("saturation", "the lowest number becomes the one above it", bottom);
      add("saturation", "the largest and the lowest number become their neighbours",
          [top, bottom](std::uint64_t code) { return top(bottom(code)); });
    }
  }
  if (s.unit != nullptr) add_short_ends(s, rules);
  if (f.format != nullptr && f.format->has_infinity() && f.format->specials == Specials::ieee)
    add("saturation", "the largest number becomes infinity", [f](std::uint64_t code) {
      const std::uint64_t sign = code & f.format->sign_bit();
      return (code ^ sign) == f.format->largest_code() ? f.format->infinity_code() | sign : code;
    });
  if (is_signed)
    add("sign", "results negated", [f](std::uint64_t code) { return negated(f, code); });
  for (const BitOrder& order : bit_orders(f.bits))
    rules.push_back({.family = "bits",
                     .name = fmt::format(fmt::runtime(order.name), "D"),
                     .results = [f, order, field](Records& r, const Sample& sample) {
                       auto& codes = r.columns[static_cast<std::size_t>(field)];
                       for (std::size_t i = 0; i < codes.size(); ++i) {
                         // Which NaN it was shows once its bits are in their order.
                         const std::uint64_t given =
                             sample.records.code(field, static_cast<std::int64_t>(i));
                         const bool nan =
                             is_nan(f, codes[i]) && is_nan(f, order.change(given, f.bits));
                         codes[i] = nan ? given : order.change(codes[i], f.bits);
                       }
                     }});
  return rules;
}

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
