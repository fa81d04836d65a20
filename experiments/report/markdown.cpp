// The headline and the table of points as Markdown, for terminals, pull requests and people without
// a browser.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/report/escape.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/gate_text.hpp"
#include "experiments/report/layer_ranking.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/record.hpp"
#include "experiments/report/report.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

std::string number(const std::optional<double>& x, int digits, double factor = 1) {
  return x ? fmt::format("{:.{}f}", *x * factor, digits) : "";
}

/// Of a finding, in decibels or in thousandths.
std::string figure(const std::optional<double>& x) { return x ? fmt::format("{:.4g}", *x) : ""; }

/// The interval of a finding.
std::string ends(const Member<Ends>& ends) {
  return ends && ends->known() ? fmt::format("[{:.4g}, {:.4g}]", *ends->low, *ends->high) : "";
}

std::string interval(const std::optional<double>& x, const std::optional<double>& low,
                     const std::optional<double>& high) {
  if (!x) return "";
  if (!low || !high) return percent_text(*x);
  return fmt::format("{} ({} to {})", percent_text(*x), percent_text(*low), percent_text(*high));
}

std::string role(const RoleRecord& r) {
  if (!r.quantized) return "float32";
  return fmt::format("{}, {}, {}, {} per {}", r.format, r.rounding, r.overflow, r.scale,
                     r.granularity) +
         (r.mask.empty() ? "" : " " + r.mask);
}

/// The predicted SQNR, "-" with the reason where the row gives one, and what it leaves out.
std::string predicted(const Record& r) {
  if (!r.predicted_sqnr_db) return r.left_out.empty() ? "" : "- (" + r.left_out + ")";
  return number(r.predicted_sqnr_db, 1) + (r.unit_ignored() ? " (unit left out)" : "");
}

/// The SQNR at the best common gain of the outputs.
std::string gained(const Record& r) {
  const std::string text = number(r.gained_db, 1);
  if (!r.predicted_gained_db) return text;
  return text + " (predicted " + number(r.predicted_gained_db, 1) + ")";
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + markdown_cell(cell) + " |";
  return out + "\n";
}

/// A header, and the line below it.
std::string table_head(const std::vector<std::string>& header) {
  std::string out = table_line(header) + "|";
  for (std::size_t i = 0; i < header.size(); ++i) out += "---|";
  return out + "\n";
}

/// What an experiment concluded (experiment.json).
std::string experiment_part(const ExperimentFile& experiment) {
  const auto paragraph = [](const std::string& text, const char* end) {
    return text.empty() ? "" : markdown_cell(text) + end + "\n\n";
  };
  std::string out = "# Experiment: " + markdown_cell(experiment.name) + "\n\n" +
                    paragraph(experiment.question, "?") + paragraph(experiment.source, "");
  if (!experiment.claims.empty())
    out += table_head({"claimed", "predicted", "measured", "95 %", "verdict", "findings"});
  for (const ClaimRow& claim : experiment.claims) {
    const FindingRow finding = claim.worst.value_or(FindingRow());
    out += table_line(
        {claim.claim, figure(finding.predicted), figure(finding.measured), ends(finding.ci95),
         claim.verdict ? to_string(*claim.verdict) : "not tested",
         fmt::format("{} hold, {} undecided, {} fail", claim.holds, claim.undecided, claim.fails)});
  }
  if (!experiment.claims.empty())
    out += "\nNumbers are those of the worst finding of each claim.\n\n";
  for (const std::string& sentence : experiment.sentences)
    out += "- " + markdown_cell(sentence) + "\n";
  out += "\n" + table_head({"finding", "predicted", "measured", "95 %", "verdict"});
  for (const FindingRow& finding : experiment.findings) {
    out += table_line({finding.what, figure(finding.predicted), figure(finding.measured),
                       ends(finding.ci95),
                       std::string(to_string(finding.judged())) +
                           (finding.is_self_check() ? " (self-check)" : "")});
  }
  for (const ResultTable& table : experiment.tables) {
    out += "\n" + markdown_cell(table.title) + ":\n\n" + table_head(table.header);
    for (const std::vector<std::string>& row : table.rows) out += table_line(row);
  }
  return out + "\n";
}

/// Changes are in the unit of the figure itself, also where a small loss is a share of float32's.
std::string change_title(const Measure& measure) {
  const std::string unit = measure.is_bits() ? "bits" : measure.relative ? "" : measure.unit;
  return unit.empty() || unit.starts_with("of ") ? "change" : "change, " + unit;
}

std::string points_part(const std::vector<Record>& records) {
  const Measure& judged = measure_of(records);
  const bool texts = std::any_of(records.begin(), records.end(),
                                 [](const Record& r) { return r.perplexity.has_value(); });
  const bool recipes = std::any_of(records.begin(), records.end(),
                                   [](const Record& r) { return !r.recipe.empty(); });
  std::vector<std::string> header = {"#"};
  if (recipes) header.emplace_back("recipe");
  header.insert(header.end(), {"weights", "activations", "unit", "bits W", "bits A"});
  if (!judged.is_top1()) header.insert(header.end(), {judged.words, change_title(judged)});
  if (texts) header.emplace_back("perplexity");
  const std::vector<std::string> scores = score_columns(records);
  for (const std::string& name : scores) header.push_back(name + " (95 %)");
  const bool predictions = any_predictions(records);
  header.insert(header.end(), {"top-1, % (95 %)", "change, points (95 %, paired)", "SQNR, dB"});
  if (predictions) header.emplace_back("predicted, dB");
  const auto any = [&records](auto test) {
    return std::any_of(records.begin(), records.end(), test);
  };
  const bool gates = any_gate(records);
  if (gates) header.emplace_back("gate");
  const bool gains = any([](const Record& r) { return r.gained_db.has_value(); });
  if (gains) header.emplace_back("at best gain, dB");
  header.emplace_back("other rules");
  const bool settings = any([](const Record&r) { return !r.settings.empty(); }),
             notes = any([](const Record&r) { return r.not_finite || !r.notes.empty(); });
  if (settings) header.emplace_back("settings");
  if (notes) header.emplace_back("notes");
  std::string out = table_line(header);
  for (const std::string& name : header) {
    const bool words = name == "recipe" || name == "weights" || name == "activations" ||
                       name == "unit" || name == "other rules" || name == "settings" ||
                       name == "notes" || name == "gate";
    out += &name == &header.front() ? "|--:|" : words ? "---|" : "--:|";
  }
  out += "\n";
  for (const Record& r : records) {
    std::vector<std::string> cells = {fmt::format("{}", r.position + 1)};
    if (recipes) cells.push_back(r.recipe);
    cells.insert(cells.end(), {role(r.weight), role(r.activation), r.unit, number(r.bits_weight, 2),
                               number(r.bits_activation, 2)});
    if (!judged.is_top1()) {
      const bool same = r.judged.measure == &judged;
      const auto cell = [&](const std::optional<double>& x) {
        return same ? number(x,
                             judged.factor == 100
                                 ? judged.digits
                                 : shown_decimals(judged.factor * x.value_or(0), judged.digits),
                             judged.factor)
                    : "";
      };
      cells.insert(cells.end(), {cell(r.judged.value), cell(r.judged.difference)});
    }
    if (texts) cells.push_back(number(r.perplexity, 3));
    for (const std::string& name : scores) cells.push_back(score_text(r, name));
    cells.insert(
        cells.end(),
        {interval(r.top1, r.ci_low, r.ci_high),
         r.is_baseline() ? "" : interval(r.difference, r.difference_low, r.difference_high),
         r.not_finite && !r.sqnr_db ? "NaN" : number(r.sqnr_db, 1)});
    if (predictions) cells.push_back(predicted(r));
    if (gates) cells.push_back(gate_words(r));
    if (gains) cells.push_back(gained(r));
    cells.push_back(r.other);
    if (settings) cells.push_back(r.settings);
    if (notes) {
      std::vector<std::string> lines = not_finite_sentences(*r.row);
      lines.insert(lines.end(), r.notes.begin(), r.notes.end());
      cells.push_back(joined(lines, "; "));
    }
    out += table_line(cells);
  }
  return out;
}

std::string rows_part(const std::vector<Record>& records) {
  const Verdicts verdicts = judge_predictions(records);
  const bool layers = asks_for_layers(records);
  std::string out =
      layers ? "# W" + ranking_question(records).substr(1) + "\n\n" : "# Accuracy against bits\n\n";
  if (!layers) {
    for (const std::string& sentence : best_of_widths(configurations(records)))
      out += "- " + markdown_cell(sentence) + "\n";
    out += "\n";
  }
  for (const std::string& sentence :
       layers ? ranking_sentences(rank_layers(records)) : headline(records))
    out += markdown_cell(sentence) + "\n";
  for (const std::string& sentence : prediction_sentences(verdicts))
    out += markdown_cell(sentence) + "\n";
  for (const SharedNote& note : shared_notes(records))
    out += "\nNote: " + markdown_cell(note.text + " (" + listed_names(note.names) + ")") + "\n";
  out += "\n" + points_part(records);
  if (verdicts.refused.empty()) return out;
  out += "\nTensors without a fitted distribution:\n\n";
  out += table_line({"layer", "role", "elements", "best family", "KS distance", "threshold"});
  out += "|---|---|--:|---|--:|--:|\n";
  for (const RefusedTensor& t : verdicts.refused) {
    out += table_line(
        {t.layer, t.role, number(t.n, 0), t.family, number(t.distance, 3), number(t.threshold, 3)});
  }
  return out;
}

}  // namespace

void write_markdown(const ReportInput& input, const std::string& path) {
  const std::vector<Record> records = read_records(*input.rows, input.folder);
  const bool answers = input.experiment && input.experiment->is_object();
  std::string out = answers ? experiment_part(read_experiment(*input.experiment)) : "";
  if (!answers || !records.empty()) out += rows_part(records);
  std::string gates;
  for (const std::string& sentence : gate_sentences(records, input.unfinished))
    gates += markdown_cell(sentence) + "\n\n";
  constexpr std::string_view kTitleEnd = "\n\n";
  out.insert(out.find(kTitleEnd) + kTitleEnd.size(), gates);
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
