#include "emu/oracle/generator.hpp"

#include <fmt/format.h>

#include "emu/oracle/classes.hpp"
#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/proposer.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

constexpr int kProbes = 2000;   // whether the subject has a style at all
constexpr int kAttempts = 400;  // for a record of a mixed file
constexpr int kMost = 100000;   // for a record of one style
/// The number of a record that no file has: what probes draw from.
constexpr std::int64_t kProbeRecord = (std::int64_t{1} << 48) - 1;

/// What the records of a mixed file are, in turns; random inputs twice.
constexpr Style kTurns[] = {Style::random, Style::ties,      Style::subnormal, Style::alignment,
                            Style::random, Style::cancel,    Style::overflow,  Style::alignment,
                            Style::edges,  Style::near_ties, Style::carry};

std::string what(const Subject& s) {
  return s.unit != nullptr
             ? "unit " + s.unit->row().name
             : fmt::format("{} of {} to {}", to_string(s.operation), s.a->name, s.to->name);
}

}  // namespace

struct Generator::Workshop {
  Proposer proposer;
  Classifier classifier;
  explicit Workshop(const Generator& g)
      : proposer(g.subject_, g.layout_), classifier(g.subject_, g.layout_) {}
};

std::string_view Generator::write(Style style, Dice dice, int attempts, Workshop& shop,
                                  Records& records, std::int64_t i) {
  if (style == Style::alignment && !shop.classifier.aligns()) return {};
  if (style == Style::overflow && !shop.classifier.may_overflow()) return {};
  const bool sure = style == Style::random || style == Style::edges;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    shop.proposer.propose(style, dice, shop.classifier, records, i);
    if (style == Style::alignment) {
      if (const auto name = shop.classifier.alignment(records, i); !name.empty()) return name;
    } else if (sure || shop.classifier.is(style, records, i)) {
      return to_string(style);
    }
  }
  return {};
}

Generator::Generator(const Subject& s, const EpilogueConstants& constants)
    : subject_(s), style_(parse_style(s.style)), layout_(layout_of(s)), constants_(constants) {
  if (s.codes) {
    sums_ = std::make_shared<const Generator>(sums_of(s));
    limit_ = sums_->limit();
    return;
  }
  Workshop shop(*this);
  if (style_ == Style::exhaustive) {
    limit_ = shop.proposer.inputs();
    if (limit_ == 0)
      throw Error(
          fmt::format("style exhaustive: expected at most 2^32 inputs, {} has more", what(s)));
    return;
  }
  if (style_ == Style::edges) limit_ = shop.proposer.edge_combinations();
  Records probe(layout_, 1);
  const auto has = [&](Style style) {
    return !write(style, Dice(0, kProbeRecord), kProbes, shop, probe, 0).empty();
  };
  if (style_ != Style::mixed) {
    styles_ = {style_};
    if (style_ == Style::alignment && !shop.classifier.aligns())
      throw Error(fmt::format("style alignment: {} has none: it aligns no addends", what(s)));
    if (style_ == Style::overflow && !shop.classifier.may_overflow())
      throw Error(
          fmt::format("style overflow: {} has none: its largest operands give no more "
                      "than {} has",
                      what(s), s.to->name));
    if (!has(style_))
      throw Error(fmt::format("style {}: {} has none: none of {} tries was one", s.style, what(s),
                              kProbes));
    return;
  }
  for (const Style style : kTurns) {
    if (has(style)) styles_.push_back(style);
  }
}

void Generator::fill(std::int64_t first, Records& records) const {
  if (sums_ != nullptr) {
    Records sums(sums_->layout(), records.size);
    sums_->fill(first, sums);
    return draw_epilogues(subject_, constants_, first, sums, records);
  }
  Workshop shop(*this);
  for (std::int64_t i = 0; i < records.size; ++i) {
    const std::int64_t number = first + i;
    std::string_view name;
    if (style_ == Style::exhaustive) {
      shop.proposer.put_input(number, records, i);
      name = "exhaustive";
    } else if (style_ == Style::edges && number < limit_) {
      shop.proposer.put_edges(number, records, i);
      name = "edges";
    } else {
      const Dice dice(subject_.seed, number);
      const Style style = styles_[static_cast<std::size_t>(number) % styles_.size()];
      const bool mixed = style_ == Style::mixed;
      name = write(style, dice, mixed ? kAttempts : kMost, shop, records, i);
      if (name.empty() && mixed) name = write(Style::random, dice, 1, shop, records, i);
      if (name.empty())
        throw Error(fmt::format("style {}: record {}: none of {} tries was one", subject_.style,
                                number, kMost));
    }
    records.class_of[static_cast<std::size_t>(i)] = records.class_number(name);
  }
  evaluate(subject_, records);
}

}  // namespace numemu::oracle
