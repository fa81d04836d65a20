#include "cli/experiment_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "api/text/table.hpp"
#include "cli/command.hpp"
#include "cli/network_options.hpp"
#include "cli/progress.hpp"
#include "cli/report_files.hpp"
#include "cli/talk.hpp"
#include "experiments/published/systems.hpp"
#include "experiments/report/number_text.hpp"
#include "formats/storage/array.hpp"

namespace numemu::cli {
namespace {

/// Predicted +- tolerance, measured +- half of the interval, interval; "-" where there is none.
std::vector<std::string> cells_of(const experiments::Finding& finding) {
  return {experiments::figure_text(finding.predicted, finding.tolerance, "-", "+-"),
          experiments::figure_text(finding.measured, half_width(finding), "-", "+-"),
          experiments::interval_text(finding.low, finding.high, "-")};
}

constexpr const char *kPredicted = "predicted +- tolerance", *kMeasured = "measured +- half";

constexpr std::size_t kMostLines = 40;

/// Without columns in which all rows agree: the title has them.
experiments::ResultTable narrowed(const experiments::ResultTable& table) {
  if (table.rows.size() < 2) return table;
  experiments::ResultTable out{table.title, {}, {}};
  out.rows.resize(table.rows.size());
  for (std::size_t c = 0; c < table.header.size(); ++c) {
    const auto cell = [c](const std::vector<std::string>& row) {
      return c < row.size() ? row[c] : std::string();
    };
    const std::string first = cell(table.rows.front());
    if (std::ranges::count(table.rows, first, cell) == std::ssize(table.rows)) {
      out.title += fmt::format("; {} {}", table.header[c], first);
      continue;
    }
    out.header.push_back(table.header[c]);
    for (std::size_t r = 0; r < table.rows.size(); ++r) out.rows[r].push_back(cell(table.rows[r]));
  }
  return out.header.empty() ? table : out;
}

/// At least a few rows of each table, and as many as `most` lines have room for: those that it
/// took.
std::size_t print_tables(const std::vector<experiments::ResultTable>& tables, std::size_t most) {
  constexpr std::size_t kFewRows = 3, kAround = 4;  // title, header, what is left out, a blank line
  std::size_t lines = 0;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const experiments::ResultTable table = narrowed(tables[i]);
    const std::size_t share = (most - std::min(lines, most)) / (tables.size() - i);
    const auto first = [&](std::size_t rows) {
      return api::folded_table(table.header, {table.rows.begin(), table.rows.begin() + rows});
    };
    std::size_t rows =
        std::min(table.rows.size(), std::max(kFewRows, share - std::min(kAround, share)));
    std::string text = first(rows);
    const std::size_t parts = std::ranges::count(text, '\n') / (rows + 1);  // one below the other
    if (parts > 1) text = first(rows = std::min(rows, std::max(kFewRows, rows / parts)));
    const std::size_t left = table.rows.size() - rows;
    fmt::print("{}\n{}{}\n", harmless(table.title), text,
               left > 0 ? fmt::format("... {} more in the report\n", left) : "");
    lines += static_cast<std::size_t>(std::ranges::count(text, '\n')) + 2 + (left > 0);
  }
  return lines;
}

/// The answer, tables where they are asked for, claims, and as many sentences as fit; the report
/// has the rest.
void print(const experiments::ExperimentFile& file, bool tables) {
  std::size_t checks = 0, passed = 0,
              lines = 4;  // self-checks, a blank line, where the rest is, the folder
  for (const experiments::Finding& finding : file.findings) {
    checks += finding.self_check;
    passed += finding.self_check && finding.verdict == Verdict::holds;
  }
  if (const std::string answer = answer_of(file); !answer.empty()) {
    fmt::print("{}\n\n", harmless(answer));
    lines += 2;
  }
  if (tables) {
    constexpr std::size_t kSentences = 3;  // that tables leave room for
    const std::size_t others = (file.claims.empty() ? 0 : file.claims.size() + 2) +
                               std::min(kSentences, file.sentences.size());
    lines += print_tables(file.tables, kMostLines - std::min(kMostLines, lines + others));
  }
  const std::vector<std::string> published = published_figures(file);
  std::vector<std::vector<std::string>> claims;
  for (const experiments::ClaimRow& claim : file.claims) {
    claims.push_back(cells_of(claim.worst.value_or(experiments::Finding())));
    auto& cells = claims.back();
    cells.insert(cells.begin(),
                 {verdict_text(file, claim),
                  fmt::format("{}, {}, {}", claim.holds, claim.undecided, claim.fails)});
    if (!published.empty())
      cells.push_back(published[claims.size() - 1].empty() ? "-" : published[claims.size() - 1]);
    cells.push_back(claim.worst ? fmt::format("{} Worst: {}", claim.claim, claim.worst->what)
                                : claim.claim);
  }
  if (!claims.empty()) {
    std::vector<std::string> header = {"verdict",       "hold, undecided, fail",
                                       kPredicted,      kMeasured,
                                       "95 % interval", "claim, and the finding of the numbers"};
    if (!published.empty()) header.insert(header.end() - 1, "published");
    fmt::print("{}\n", api::text_table(header, claims));
    lines += claims.size() + 2;
  }
  std::size_t shown = 0;
  for (; shown < file.sentences.size() && lines < kMostLines; ++shown, ++lines)
    fmt::print("{}\n", harmless(file.sentences[shown]));
  if (checks > 0) fmt::print("Self-checks: {} of {} hold.\n", passed, checks);
  std::string rest = fmt::format("{} and {}", counted(std::ssize(file.findings), "finding"),
                                 counted(std::ssize(file.tables), "table"));
  if (const std::size_t left = file.sentences.size() - shown; left > 0)
    rest = fmt::format("{} more, {}", counted(static_cast<std::int64_t>(left), "sentence"), rest);
  fmt::print("\nIn the report: {}.\n", rest);
}

}  // namespace

api::ExperimentResult run_one(const api::ExperimentRequest& asked, bool quiet) {
  const std::string& name = asked.name;
  api::Context context = program_context(quiet);
  std::unique_ptr<Progress> progress;
  context.on_work = [&, bench = std::shared_ptr<Progress>()](const api::WorkState& at) mutable {
    if (!bench)
      bench = std::make_shared<Progress>(name, static_cast<std::int64_t>(at.total), "", quiet);
    bench->show(at.done, std::string(at.phase), at.free);
    if (at.done >= at.total) bench.reset();
  };
  experiments::SweepHooks hooks;
  hooks.on_point = [&](std::size_t done, std::size_t kept, std::size_t total,
                       const experiments::Point& point) {
    if (!progress) {
      progress =
          std::make_unique<Progress>(name, static_cast<std::int64_t>(total), "points", quiet);
    }
    progress->show(static_cast<std::int64_t>(done), point.where,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  std::size_t trials = 0;  // total of the bar: an experiment may run several sets of trials
  hooks.on_trial = [&](std::size_t done, std::size_t kept, std::size_t total,
                       const std::string& label) {
    if (!progress || done == 0 || total != trials) {
      trials = total;
      progress =
          std::make_unique<Progress>(name, static_cast<std::int64_t>(total), "trials", quiet);
    }
    progress->show(static_cast<std::int64_t>(done), label,
                   static_cast<std::int64_t>(std::min(done, kept)));
  };
  return api::run_experiment(asked, context, hooks);
}

int run_and_print(const api::ExperimentRequest& asked, const ShownExperiment& shown) {
  const api::ExperimentResult result = run_one(asked, shown.quiet);
  if (!result.concluded) {
    fmt::print("{}\n", harmless(result.out));
    return kFine;
  }
  if (shown.json) {
    fmt::print("{}\n", json_of(result.file).dump(2));
  } else {
    print(result.file, shown.tables);
    fmt::print("{}\n", harmless(result.out));
  }
  return shown.strict && result.failed() ? kMismatch : kFine;
}

}  // namespace numemu::cli
