// numemu analyze: what a format does to numbers of a law or a file, predicted beside measured.
#include <fmt/format.h>

#include <string_view>

#include "api/analysis.hpp"
#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/format_names.hpp"
#include "cli/talk.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/utf8.hpp"

namespace numemu::cli {
namespace {

using api::Analysis;
using api::AnalyzedFigure;

struct AnalyzeOptions {
  api::AnalysisRequest request;
  std::int64_t seed = 0;
  bool json = false, quiet = false;
};

constexpr std::int64_t kLeastDraws = 1000, kMostDraws = 100000000;

std::string number(double value) { return fmt::format("{:.6g}", value); }

double sqnr_db(double signal, double square) { return 10 * portable::log10(signal / square); }

void print_report(const Analysis& s, const AnalyzeOptions& options) {
  const Format& format = *s.conversion.format;
  const bool symmetric = s.conversion.symmetric && format.kind == Kind::integer && format.is_signed;
  fmt::print("{}{} {} {}, scale {:.9g}, {} {} of {}, seed {}\n\n", format.name,
             symmetric ? " (symmetric)" : "", to_string(s.conversion.rounding),
             to_string(s.conversion.overflow), s.scale, s.n, !s.law ? "numbers" : "draws",
             s.law ? *s.law : harmless(options.request.numbers), options.seed);
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

int run_analyze(const AnalyzeOptions& options) {
  api::AnalysisRequest request = options.request;
  request.seed = static_cast<std::uint64_t>(options.seed);
  const Analysis analysis = api::analyze(request, [&](std::int64_t n) {
    if (!options.quiet) say("converting {} numbers", n);
  });
  note_short_names("--format", request.format);
  if (options.json) {
    fmt::print("{}\n", api::analysis_json(analysis).dump(2));
  } else {
    print_report(analysis, options);
  }
  return analysis.fails() ? kMismatch : kFine;
}

}  // namespace

void add_analyze(Program& program) {
  auto [command, options] = program.command<AnalyzeOptions>("analyze", run_analyze);
  api::AnalysisRequest& request = options.request;
  command.option("--format F", request.format, "A scalar format of at most 16 bits").required();
  command
      .option("--dist D|FILE.npy", request.numbers,
              "normal, laplace, uniform (on [-1, 1]), lognormal:S (S of ln|x|), "
              "lognormal:S:log2 (S of log2|x|), or a .npy file; |x| for unsigned formats")
      .required();
  command.option("--scale S", request.scale, "S: x / S is rounded (default 1)");
  command.option("--scale-rule NAME", request.rule,
                 "Rule that chooses S: absmax, mse, pow2(absmax), lognormal(3), ... "
                 "(a law: from its draws)");
  command.flag("--best-scale", request.best_scale,
               "Also find the scales with the least MSE, real and power of two");
  command.option("--rounding R", request.rounding, "rne rna rtz rup rdn rodd sr(n[,a|b|c|odd])");
  command.option("--overflow O", request.overflow, "saturate propagate ieee");
  command.option("--n N", request.n, "Draws of the measurement (default 1000000)")
      .whole(kLeastDraws, kMostDraws);
  command.option("--seed S", options.seed, "Seed of the draws and the random bits (default 0)")
      .whole(0, INT64_MAX);
  command.flag("--json", options.json, "Print JSON");
  command.flag("--quiet", options.quiet, "Print nothing on stderr");
  add_threads(command);
}

}  // namespace numemu::cli
