// numemu plot: figures for papers from formats and laws, or from the rows of a sweep.
#include "api/figures/plot.hpp"

#include <fmt/format.h>

#include <optional>

#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"

namespace numemu::cli {
namespace {

struct PlotOptions {
  std::string kind, rows, out;
  api::AnalysisTableRequest table;
  std::optional<std::string> rounding;
  std::optional<std::int64_t> seed;
};

constexpr const char *kError = "error", *kCells = "cells", *kPredicted = "predicted";

void require_given(bool given, const PlotOptions& options, const char* option) {
  if (!given) throw usage_error(fmt::format("{}: expected with plot {}", option, options.kind));
}
void refuse_given(bool given, const PlotOptions& options, const char* option) {
  if (given) throw usage_error(fmt::format("{}: not allowed with plot {}", option, options.kind));
}

api::WrittenPlot plot(const PlotOptions& options) {
  const bool error = options.kind == kError, predicted = options.kind == kPredicted;
  if (!error && !predicted && options.kind != kCells)
    throw usage_error(
        fmt::format("'{}': expected {}, {} or {}", options.kind, kError, kCells, kPredicted));
  const api::AnalysisTableRequest& table = options.table;
  (predicted ? require_given : refuse_given)(!options.rows.empty(), options, "--rows");
  (predicted ? refuse_given : require_given)(!table.formats.empty(), options, "--format");
  (error ? require_given : refuse_given)(!table.numbers.empty(), options, "--dist");
  if (!error) {
    refuse_given(!table.rules.empty(), options, "--scale-rule");
    refuse_given(options.rounding.has_value(), options, "--rounding");
    refuse_given(options.seed.has_value(), options, "--seed");
  }
  if (predicted) return api::plot_predicted(options.rows, options.out);
  if (!error) return api::plot_cells(table.formats, options.out);
  api::AnalysisTableRequest asked = table;
  asked.rounding = options.rounding.value_or(asked.rounding);
  asked.seed = static_cast<std::uint64_t>(options.seed.value_or(0));
  return api::plot_error(asked, options.out);
}

int run_plot(const PlotOptions& options) {
  const api::WrittenPlot written = plot(options);
  if (!written.pdf) say("no PDF: rsvg-convert is not installed (Debian: librsvg2-bin)");
  for (const std::string& name : written.figures)
    fmt::print("{}\n", harmless(options.out + "/" + name + "-2col.svg"));
  return kFine;
}

}  // namespace

void add_plot(Program& program) {
  auto [command, options] = program.command<PlotOptions>("plot", run_plot);
  command
      .option("kind KIND", options.kind,
              "error (SQNR against bits), cells (values and steps of formats) or predicted "
              "(against measured)")
      .suggest([] {
        return std::vector<std::string>{kError, kCells, kPredicted};
      })
      .required();
  command.option("--format F...", options.table.formats,
                 "Formats, lists and grids as in analyze: e{2,3}m1,nf4, all:8");
  command.option("--dist LAW...", options.table.numbers,
                 "Laws and .npy files as in analyze, a figure for each");
  command.option("--scale-rule NAME...", options.table.rules,
                 "Scale rules as in analyze (default: best, or that of the block format)");
  command.option("--rounding R", options.rounding, "rne rna rtz rup rdn rodd sr(n)");
  command.option("--rows DIR", options.rows, "Folder of a sweep with predictions");
  command.option("--out DIR", options.out, "Folder for SVG, PDF and CSV").required();
  command.option("--seed S", options.seed, "Seed of the draws (default 0)").whole(0, INT64_MAX);
  add_threads(command);
}

}  // namespace numemu::cli
