// The headline and the table of points as Markdown, for terminals, pull requests and people without
// a browser.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/report/escape.hpp"
#include "experiments/report/findings.hpp"
#include "experiments/report/report.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::experiments {
namespace {

std::string number(const std::optional<double>& x, int digits, double factor = 1) {
  return x ? fmt::format("{:.{}f}", *x * factor, digits) : "";
}

std::string interval(const std::optional<double>& x, const std::optional<double>& low,
                     const std::optional<double>& high) {
  if (!x || !low || !high) return number(x, 2, 100);
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", 100 * *x, 100 * *low, 100 * *high);
}

std::string role(const RoleRecord& r) {
  if (!r.quantized) return "float32";
  return fmt::format("{}, {}, {}, {} per {}", r.format, r.rounding, r.overflow, r.scale,
                     r.granularity);
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + markdown_cell(cell) + " |";
  return out + "\n";
}

}  // namespace

void write_markdown(const ReportInput& input, const std::string& path) {
  const std::vector<Record> records = read_records(*input.rows);
  const Verdicts verdicts = judge_predictions(records);
  std::string out = "# Accuracy against bits\n\n";
  for (const std::string& sentence : headline(records, verdicts))
    out += markdown_cell(sentence) + "\n";
  out += "\n" +
         table_line({"#", "weights", "activations", "unit", "bits W", "bits A", "top-1, % (95 %)",
                     "change, points (95 %, paired)", "SQNR, dB", "predicted, dB", "other rules"});
  out += "|--:|---|---|---|--:|--:|--:|--:|--:|--:|---|\n";
  for (const Record& r : records) {
    out += table_line({fmt::format("{}", r.position + 1), role(r.weight), role(r.activation),
                       r.unit, number(r.bits_weight, 2), number(r.bits_activation, 2),
                       interval(r.top1, r.ci_low, r.ci_high),
                       interval(r.difference, r.difference_low, r.difference_high),
                       number(r.sqnr_db, 1), number(r.predicted_sqnr_db, 1), r.other});
  }
  if (!verdicts.refused.empty()) {
    out += "\nTensors that no distribution fits:\n\n";
    out += table_line({"layer", "role", "elements", "best family", "KS distance", "threshold"});
    out += "|---|---|--:|---|--:|--:|\n";
    for (const RefusedTensor& t : verdicts.refused) {
      out += table_line({t.layer, t.role, number(t.n, 0), t.family, number(t.distance, 3),
                         number(t.threshold, 3)});
    }
  }
  write_atomically(path, {out});
}

}  // namespace numemu::experiments
