// The Markdown file: one line per row, cells that cannot break the table.
#include <sstream>

#include "experiments/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace markdown_test {

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("markdown has a line per row and the same number of cells in each", "[fast]") {
  const Scratch scratch("markdown");
  std::vector<Json> rows = sample::rows();
  rows[2] = sample::poisoned(rows[2]);
  const ReportInput input{nullptr, kept_rows(rows), nullptr};
  write_markdown(input, scratch / "report.md");
  std::istringstream text(scratch.read("report.md"));
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() && lines > 2) break;
    if (!line.starts_with("|")) continue;
    ++lines;
    std::size_t bars = 0;
    for (std::size_t i = 0; i < line.size(); ++i)
      bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    CHECK(bars == 13);  // the poisoned row has another network, so there are settings
  }
  CHECK(lines == rows.size() + 2);
  const std::string whole = scratch.read("report.md");
  CHECK(whole.find("| float8_e4m3fn, rne, saturate, absmax per channel |") != whole.npos);
  CHECK(whole.find("Of 24 quantized configurations on ") != whole.npos);
  for (std::size_t at = whole.find('<'); at != whole.npos; at = whole.find('<', at + 1)) {
    CHECK(whole[at - 1] == '\\');
  }
}

TEST_CASE("markdown of texts and experiments", "[fast]") {
  const Scratch scratch("markdown-text");
  const std::vector<Json> rows = sample::text_rows();
  const Json experiment = sample::experiment(),
             odd = {{"findings", 3}, {"tables", {1, {{"rows", {2}}}}}};
  write_markdown({nullptr, kept_rows(rows), nullptr, &experiment}, scratch / "report.md");
  const std::string text = scratch.read("report.md");
  CHECK(text.starts_with("# Experiment: sensitivity\n"));
  CHECK(text.find("- mxfp4: conv2 is the most sensitive layer.") != text.npos);
  CHECK(text.find("| 19.4 | 15.9 ± 0.4 | \\[15.5, 16.3\\] | fails |") != text.npos);
  CHECK(text.find("which layer breaks first?\n\nOf 2 claims 1 fails, 1 is not tested") !=
        text.npos);
  CHECK(text.find(".\n\nNoises add up, it is claimed.\n") != text.npos);
  CHECK(text.find("| The output's SQNR is within 1 dB. | output SQNR in dB with mxfp4 in fc1 | "
                  "19.4 | 15.9 ± "
                  "0.4 | \\[15.5, 16.3\\] | fails | 1 hold, 0 undecided, 1 fail |") != text.npos);
  CHECK(text.find("| holds (self-check) |") != text.npos);
  CHECK(text.find("| bits per character | change, bits | perplexity |") != text.npos);
  CHECK(text.find("| 2.1000 | 0.0000 | 4.287 |") != text.npos);
  write_markdown({nullptr, kept_rows(rows), nullptr, &odd}, scratch / "report.md");
  CHECK(scratch.read("report.md").find("# Accuracy against bits") != std::string::npos);
  const std::vector<Json> none;
  write_markdown({nullptr, kept_rows(none), nullptr, &experiment}, scratch / "report.md");
  CHECK(scratch.read("report.md").find("# Accuracy against bits") == std::string::npos);
}

TEST_CASE("markdown has changes in the unit of the figure, not of a small loss", "[fast]") {
  const Scratch scratch("markdown-change");
  const auto header_of = [&](std::vector<Json> rows, const char* metric, double value) {
    for (Json& row : rows) {
      row["point"]["metrics"] = {metric};
      row["scores"] = {{{"name", metric}, {"value", value}, {"baseline", 0.5}}};
    }
    write_markdown({nullptr, kept_rows(rows), nullptr, nullptr}, scratch / "report.md");
    return scratch.read("report.md");
  };
  // Differences of squared errors, not percents of them.
  CHECK(header_of(sample::rows(), "mse", 0.4).find("| mean squared error | change | ") !=
        std::string::npos);
  CHECK(header_of(sample::rows(), "cosine", 0.4).find("| cosine with float32 | change | ") !=
        std::string::npos);
  CHECK(header_of(sample::rows(), "psnr", 0.4).find("| PSNR | change, dB | ") != std::string::npos);
  // A text that is judged by another figure than its bits.
  CHECK(header_of(sample::text_rows(), "top5", 0.4).find("| top-5 | change, points | ") !=
        std::string::npos);
}

TEST_CASE("markdown has the SQNR at the best gain where rows have one", "[fast]") {
  const Scratch scratch("markdown-gain");
  std::vector<Json> rows = {sample::rows()[1], sample::rows()[2]};
  write_markdown({nullptr, kept_rows(rows), nullptr, nullptr}, scratch / "report.md");
  CHECK(scratch.read("report.md").find("best gain") == std::string::npos);
  rows[0]["metrics"]["sqnr_gained_db"] = 14.94;
  rows[0]["predicted"]["sqnr_gained_db"] = 16.2;
  rows[1]["metrics"]["sqnr_gained_db"] = 30.0;
  write_markdown({nullptr, kept_rows(rows), nullptr, nullptr}, scratch / "report.md");
  const std::string text = scratch.read("report.md");
  CHECK(text.find("| predicted, dB | at best gain, dB |") != text.npos);
  CHECK(text.find("| 14.9 (predicted 16.2) |") != text.npos);
  CHECK(text.find("| 30.0 |") != text.npos);
}

TEST_CASE("markdown says what varies, what is not finite and why nothing is predicted", "[fast]") {
  const Scratch scratch("markdown-varies");
  std::vector<Json> rows = {sample::rows()[1], sample::not_finite_row()};
  rows[0]["point"]["recipe"]["calibrate"]["rule"] = "percentile(99.9)";
  rows[0]["predicted"]["sqnr_db"] = nullptr;
  rows[0]["predicted"]["left_out"] = "no model";
  const Json sweep = sample::sweep();
  write_markdown({&sweep, kept_rows(rows), nullptr, nullptr}, scratch / "report.md");
  const std::string text = scratch.read("report.md");
  CHECK(text.find("calibrate.rule percentile(99.9)") != text.npos);
  CHECK(text.find("- (no model)") != text.npos);
  CHECK(text.find("98,000 of 100,000 outputs are NaN") != text.npos);
  CHECK(text.find("(unit left out)") != text.npos);
}

}  // namespace markdown_test
