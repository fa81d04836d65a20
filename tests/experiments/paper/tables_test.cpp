// Tables for LaTeX: booktabs, special characters, columns of numbers.
#include <algorithm>

#include "experiments/paper/figures.hpp"
#include "experiments/programs/program.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace tables_test {

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("tables: a table of booktabs", "[fast]") {
  CHECK(latex_table("a\nb", {"format", "error %"}, {{"e4m3_x", "1 ± 2"}, {"[0, 1]"}},
                    {false, true}) ==
        "% a b\n% needs \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\n"
        "format & error \\% \\\\\n\\midrule\n"
        "e4m3\\_x & 1 $\\pm$ 2 \\\\\n{}[0, 1] &  \\\\\n\\bottomrule\n\\end{tabular}\n");
}

TEST_CASE("tables: signs of numbers are those of a text, hyphens stay", "[fast]") {
  const std::string table =
      latex_table("t", {"recipe", "change"},
                  {{"top-1 w4-a8", "-4.40"}, {"x=-1", "27.5! +-0.3"}, {"a - b", "[-0.12, -1e-05]"}},
                  {false, true});
  CHECK_THAT(table, Catch::Contains("top-1 w4-a8 & $-$4.40 \\\\\n") &&
                        Catch::Contains("x=$-$1 & 27.5! $\\pm$0.3 \\\\\n") &&
                        Catch::Contains("a - b & [$-$0.12, $-$1e$-$05] \\\\\n"));
  // Those of a report, too: changes of accuracy and intervals of predictions.
  const Json sweep = sample::sweep(), experiment = sample::experiment();
  const std::vector<Json> rows = sample::rows();
  for (const auto& [name, text] :
       latex_tables({.sweep = &sweep, .rows = kept_rows(rows), .experiment = &experiment})) {
    INFO(name << '\n' << text);
    const std::string body = text.substr(text.find("\\toprule"));
    CHECK(body.find("+-") == body.npos);
    for (std::size_t at = body.find(" -"); at != body.npos; at = body.find(" -", at + 1))
      CHECK(!(body[at + 2] >= '0' && body[at + 2] <= '9'));
  }
}

TEST_CASE("tables: those of a report, also of hostile names", "[fast]") {
  std::vector<Json> rows = sample::rows();
  for (Json& row : rows) row = sample::poisoned(row);
  const Json sweep = sample::sweep(), experiment = sample::poisoned(sample::experiment());
  const auto tables =
      latex_tables({.sweep = &sweep, .rows = kept_rows(rows), .experiment = &experiment});
  std::vector<std::string> names;
  for (const auto& [name, table] : tables) {
    INFO(table);
    names.push_back(name);
    // Each line between the rules ends the row; no cell adds columns, lines or commands.
    const std::size_t columns =
        table.find("}\n", table.find("tabular}{")) - table.find("tabular}{") - 9;
    const std::string body = table.substr(
        table.find("\\toprule\n") + 9, table.find("\\bottomrule") - table.find("\\toprule\n") - 9);
    std::size_t from = 0, lines = 0;
    for (std::size_t end = body.find('\n'); end != body.npos; end = body.find('\n', from)) {
      const std::string line = body.substr(from, end - from);
      from = end + 1;
      if (line == "\\midrule") continue;
      ++lines;
      REQUIRE(line.ends_with(" \\\\"));
      std::size_t separators = 0;
      for (std::size_t at = line.find(" & "); at != line.npos; at = line.find(" & ", at + 1))
        separators += line[at - 1] != '\\';
      CHECK(separators == columns - 1);
    }
    CHECK(lines > 1);
  }
  for (const char* name : {"findings", "table-1", "points"})
    CHECK(std::ranges::find(names, name) != names.end());
}

TEST_CASE("tables: what all points share stands in the comment", "[fast]") {
  const Json sweep = sample::sweep();
  std::vector<Json> rows = sample::rows();
  rows.resize(4);  // of one unit
  const auto tables = latex_tables({.sweep = &sweep, .rows = kept_rows(rows)});
  REQUIRE(tables.size() == 1);
  const std::string& points = tables[0].second;
  INFO(points);
  const std::size_t columns =
      points.find("}\n", points.find("tabular}{")) - points.find("tabular}{") - 9;
  CHECK(columns <= 12);
  CHECK(points.starts_with("% points; all: unit "));
}

TEST_CASE("tables: LaTeX sets them, also of hostile names", "[fast]") {
  const EndedProgram found = run_program({"kpsewhich", "booktabs.sty"}, ProgramOutput::kept);
  if (!found.fine()) {
    WARN("skipped: LaTeX with booktabs is not installed (Debian: texlive-latex-recommended)");
    return;
  }
  std::string paper = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n";
  std::vector<Json> rows = sample::rows(), poisoned = rows;
  for (Json& row : poisoned) row = sample::poisoned(row);
  const Json sweep = sample::sweep(), plain = sample::experiment(),
             hostile = sample::poisoned(sample::experiment());
  for (const auto& tables :
       {latex_tables({.sweep = &sweep, .rows = kept_rows(rows), .experiment = &plain}),
        latex_tables({.sweep = &sweep, .rows = kept_rows(poisoned), .experiment = &hostile})})
    for (const auto& [name, table] : tables) paper += "\n" + table;
  const WorkFolder work;
  numemu::write_atomically(work / "paper.tex", {paper, "\\end{document}\n"});
  const EndedProgram set =
      run_program({"pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape",
                   "-output-directory=" + (work / "."), work / "paper.tex"},
                  ProgramOutput::kept);
  INFO(numemu::read_text(work / "paper.log"));
  CHECK(set.fine());
}

}  // namespace tables_test
