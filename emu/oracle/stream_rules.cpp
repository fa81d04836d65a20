// Rules of what is left of the record before: latency, operands not loaded, sums not cleared.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/layout.hpp"
#include "emu/oracle/rule.hpp"

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
  static constexpr std::array<std::pair<std::string_view, const char*>, 9> kNames = {
      {{"a", "A"},
       {"b", "B"},
       {"c", "C"},
       {"sa", "scales of A"},
       {"sb", "scales of B"},
       {"e", "metadata"},
       {"r", "random bits"},
       {"random", "random bits"},
       {"in", "operand"}}};
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

}  // namespace numemu::oracle
