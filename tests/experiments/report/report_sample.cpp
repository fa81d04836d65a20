// Writes the sample sweep's report in every format, for the browser test: report_sample FOLDER
// [full|baseline|hostile|text|experiment|answer|lost].
#include <cstdio>
#include <exception>
#include <string>

#include "experiments/report/report.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

using numemu::Json;

int main(int argc, char** argv) {
  using namespace numemu::experiments;
  if (argc < 2) {
    std::fputs("usage: report_sample FOLDER [full|baseline|hostile|text|experiment|answer|lost]\n",
               stderr);
    return 2;
  }
  try {
    const std::string kind = argc > 2 ? argv[2] : "full";
    std::vector<Json> rows = sample::rows();
    Json sweep = sample::sweep(), tensors = sample::tensors(), experiment;
    if (kind == "baseline") {
      rows.resize(1);
      tensors = nullptr;
    } else if (kind == "text") {
      rows = sample::text_rows();
    } else if (kind == "experiment") {
      rows = sample::sensitivity_rows();
      experiment = sample::experiment();
    } else if (kind == "answer") {
      rows.clear();
      tensors = nullptr;
      experiment = sample::experiment();
    } else if (kind == "lost") {
      rows = {rows[0], rows[9], rows[10], sample::not_finite_row()};  // int2, int3
      for (std::size_t i : {1, 2})
        rows[i]["point"]["recipe"]["gemms"]["fprop"]["unit"] = "neutral.mac.float16.rne";
    } else if (kind == "hostile") {
      for (auto& row : rows) row = sample::poisoned(row);
      sweep = sample::poisoned(sweep);
      tensors = sample::poisoned(tensors);
      experiment = sample::poisoned(sample::experiment());
    }
    const std::vector<Row> read = read_rows(rows);
    const ReportInput input{&sweep, &read, &tensors, &experiment};
    const std::string folder = argv[1];
    write_html(input, folder + "/report.html");
    write_csv(input, folder + "/report.csv");
    write_sqlite(input, folder + "/report.sqlite");
    write_markdown(input, folder + "/report.md");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report_sample: %s\n", error.what());
    return 1;
  }
}
