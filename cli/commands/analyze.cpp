// numemu analyze: what a format does to numbers of a law or a file, predicted beside measured.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "api/analysis.hpp"
#include "api/text/lists.hpp"
#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

using api::Analysis;
using api::AnalyzedFigure;

struct AnalyzeOptions {
  api::AnalysisRequest request;
  std::int64_t seed = 0;
  std::vector<std::string> formats, numbers, rules;
  std::string csv;
  bool table = false, json = false, quiet = false;

  /// One format under one law is looked at in every figure, more share a table.
  bool one() const {
    const auto single = [](const std::vector<std::string>& lists) {
      return lists.size() == 1 && api::expanded_list(lists[0]).size() == 1;
    };
    return !table && csv.empty() && single(formats) && single(numbers) &&
           (rules.empty() || single(rules)) && !formats[0].starts_with("all:") &&
           block_format_meant(formats[0]).empty() && (rules.empty() || !is_search(rules[0]));
  }
  static bool is_search(const std::string& rule) {
    return rule == "best" || rule == "power-of-two";
  }
};

constexpr std::int64_t kLeastDraws = 1000, kMostDraws = 100000000;

std::string number(double value) { return fmt::format("{:.6g}", value); }

double sqnr_db(double signal, double square) { return 10 * portable::log10(signal / square); }

void print_report(const Analysis& s, const AnalyzeOptions& options,
                  const api::AnalysisRequest& request) {
  const Format& format = *s.conversion.format;
  const bool symmetric = s.conversion.symmetric && format.kind == Kind::integer && format.is_signed;
  fmt::print("{}{} {} {}, scale {:.9g}, {} {} of {}, seed {}\n\n", format.name,
             symmetric ? " (symmetric)" : "", to_string(s.conversion.rounding),
             to_string(s.conversion.overflow), s.scale, s.n, !s.law ? "numbers" : "draws",
             s.law ? *s.law : harmless(request.numbers), options.seed);
  std::vector<std::vector<std::string>> table;
  for (const AnalyzedFigure& row : s.figures) {
    table.push_back(
        {row.label, number(row.predicted.mean), number(row.measured.mean),
         fmt::format("[{}, {}]", number(row.comparison.low), number(row.comparison.high)),
         to_string(row.comparison.verdict)});
  }
  fmt::print("{}", api::text_table({"quantity", !s.law ? "predicted" : "predicted (exact)",
                                    "measured", "95 % interval", "verdict"},
                                   table));
  double lost = 0;
  for (const AnalyzedFigure& row : s.figures)
    if (row.key == std::string_view("infinite") || row.key == std::string_view("nan"))
      lost += row.measured.mean + row.predicted.mean;
  if (lost > 0) fmt::print("\nerrors and E[x^2] are means over the results that are finite\n");
  if (!s.best) return;
  const auto line = [&](const char* kind, const ScaleChoice& choice) {
    return std::vector<std::string>{kind, fmt::format("{:.9g}", choice.scale),
                                    fmt::format("{:.6f}", portable::log2(choice.scale)),
                                    number(choice.square),
                                    fmt::format("{:.4f}", sqnr_db(s.best->signal, choice.square))};
  };
  fmt::print("\n{}", api::text_table(
                         {"best scale (saturate)", "scale", "log2", "MSE", "SQNR dB"},
                         {line("real", s.best->real), line("power of two", s.best->power_of_two)}));
}

/// Short names of OCP's formats (e2m1) mean all codes are numbers, others (e2m2) have infinity and
/// NaN: a grid mixes both.
void note_mixed_names(const std::vector<std::string>& formats) {
  std::string finite, ieee;
  for (const std::string& name : api::format_list(formats)) {
    const bool is_short = std::ranges::all_of(
        name, [](unsigned char c) { return c == 'e' || c == 'm' || std::isdigit(c) != 0; });
    if (!is_short || !block_format_meant(name).empty()) continue;
    const Specials specials = find_format(name).specials;
    if (specials == Specials::finite && finite.empty()) finite = name;
    if (specials == Specials::ieee && ieee.empty()) ieee = name;
  }
  if (finite.empty() || ieee.empty()) return;
  say("numemu: note: --format: all codes of {} are numbers, {} has infinity and NaN: {}+finite has "
      "not",
      finite, ieee, ieee);
}

int run_table(const AnalyzeOptions& options) {
  if (options.request.overflow != "saturate")
    throw usage_error(
        "--overflow: expected saturate for a table: of other results only those that "
        "are finite would count");
  if (options.request.scale != "1" || options.request.best_scale)
    throw usage_error(
        "--scale, --best-scale: not allowed with a table, whose scales --scale-rule "
        "chooses (best)");
  const api::AnalysisTable table =
      api::analyze_table({.formats = options.formats,
                          .numbers = options.numbers,
                          .rules = options.rules,
                          .rounding = options.request.rounding,
                          .n = options.request.n,
                          .seed = static_cast<std::uint64_t>(options.seed)});
  if (!options.quiet) {
    note_mixed_names(options.formats);
    for (const std::string& note : table.notes) say("numemu: note: {}", harmless(note));
  }
  if (!options.csv.empty()) {
    OutputFiles files;
    require_replaceable(options.csv);
    files.add_text("table", options.csv, api::analysis_table_csv(table));
    files.publish();
  }
  if (options.json) {
    fmt::print("{}\n", api::analysis_table_json(table).dump(2));
    return kFine;
  }
  fmt::print("{} saturate; measured: {}\n\n", to_string(table.rounding),
             table.files ? "the numbers of the files, blocks along their last axis"
                         : fmt::format("{} draws of a law, seed {}", table.n, table.seed));
  std::vector<std::vector<std::string>> rows;
  for (const api::AnalyzedFormat& row : table.rows)
    rows.push_back(
        {row.format, fmt::format("{:.5g}", row.bits), row.rule, row.law,
         row.scale ? fmt::format("{:.6g}", *row.scale) : "", fmt::format("{:.2f}", row.sqnr_db),
         row.heavy_tails ? "heavy tails"
         : row.half_db   ? fmt::format("+-{:.2f}", *row.half_db)
                         : "",
         row.to_lloyd_db ? fmt::format("{:.2f}", *row.to_lloyd_db) : "", to_string(row.kind)});
  fmt::print("{}", api::text_table({"format", "bits", "scale rule", "law", "scale", "SQNR dB",
                                    "at 95 %", "to Lloyd-Max", "how"},
                                   rows));
  if (std::ranges::any_of(table.rows, [](const api::AnalyzedFormat& row) {
        return row.kind == api::AnalyzedFormat::Kind::reached;
      }))
    fmt::print("\nreached: by Lloyd's algorithm on the numbers; no bound\n");
  if (std::ranges::any_of(table.rows, &api::AnalyzedFormat::heavy_tails))
    fmt::print(
        "\nheavy tails: few of the draws have most of the squares; SQNR is that of these draws, "
        "another --seed has others\n");
  return kFine;
}

int run_analyze(const AnalyzeOptions& options) {
  if (!options.one()) return run_table(options);
  api::AnalysisRequest request = options.request;
  request.format = options.formats[0];
  request.numbers = options.numbers[0];
  if (!options.rules.empty()) request.rule = options.rules[0];
  request.seed = static_cast<std::uint64_t>(options.seed);
  const Analysis analysis = api::analyze(request, [&](std::int64_t n) {
    if (!options.quiet) say("converting {} numbers", n);
  });
  note_short_names("--format", request.format);
  if (options.json) {
    fmt::print("{}\n", api::analysis_json(analysis).dump(2));
  } else {
    print_report(analysis, options, request);
  }
  return analysis.fails() ? kMismatch : kFine;
}

}  // namespace

void add_analyze(Program& program) {
  auto [command, options] = program.command<AnalyzeOptions>("analyze", run_analyze);
  api::AnalysisRequest& request = options.request;
  command
      .option("--format F", options.formats,
              "A scalar format of at most 16 bits; or lists and grids of scalar and block formats, "
              "which share a table: e{2,3}m1,nf4,group(int{3,4},{32,64},float16), all:8")
      .required();
  command
      .option("--dist D|FILE.npy", options.numbers,
              "normal, laplace, uniform (on [-1, 1]), student-t:NU, lognormal:S (S of ln|x|), "
              "lognormal:S:log2 (S of log2|x|), or a .npy file; |x| for unsigned formats; a list "
              "for a table")
      .required();
  command.option("--scale S", request.scale, "S: x / S is rounded (default 1)");
  command.option("--scale-rule NAME", options.rules,
                 "Rule that chooses S: absmax, mse, pow2(absmax), lognormal(3), ... "
                 "(a law: from its draws); in a table also best and power-of-two, and lists");
  command.flag("--table", options.table, "A table for one format, too");
  command.option("--csv F", options.csv, "Write the table as CSV");
  command.flag("--best-scale", request.best_scale,
               "Also find the scales with the least MSE, real and power of two");
  command.option("--rounding R", request.rounding, "rne rna rtz rup rdn rodd sr(n[,a|b|c|odd])");
  command.option("--overflow O", request.overflow, "saturate propagate ieee");
  command
      .option("--n N", request.n, "Draws of the measurement (default 1000000; of a table 131072)")
      .whole(kLeastDraws, kMostDraws);
  command.option("--seed S", options.seed, "Seed of the draws and the random bits (default 0)")
      .whole(0, INT64_MAX);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "Print nothing on stderr");
  add_threads(command);
}

}  // namespace numemu::cli
