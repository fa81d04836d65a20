// The page: self-contained, safe against its own data, complete without charts.
#include "experiments/report/html.hpp"

#include "experiments/report/configurations.hpp"
#include "experiments/report/datasets.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace html_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Charts that rows without texts and experiments fill.
std::size_t ordinary_charts() {
  std::size_t n = 0;
  for (const Asset& chart : embedded_assets().charts)
    n += !Json::parse(chart.text)["usermeta"].contains("quiet");
  return n;
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != text.npos; }

std::string render(const std::vector<Json>& rows, const Json* tensors, std::string_view libraries,
                   const Json* experiment = nullptr) {
  const Json sweep = sample::sweep();
  ReportAssets assets = embedded_assets();
  assets.libraries = libraries;
  const std::vector<Row> read = read_rows(rows);
  return render_html({&sweep, &read, tensors, experiment}, assets);
}

}  // namespace

TEST_CASE("without libraries the page has its tables and says how to get charts", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const Json tensors = sample::tensors();
  const std::string page = render(rows, &tensors, "");
  CHECK(has(page, "built without its charting libraries"));
  CHECK(has(page, "numemu report"));
  CHECK_FALSE(has(page, "<figure"));
  CHECK_FALSE(has(page, "id=\"report-data\""));
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::size_t best = 1 + best_points(configurations(records)).points.size();
  CHECK(count(page, "<tr") == best + rows.size() + 1 + 6 + 6);
  CHECK(has(page, "rne · saturate · absmax / channel"));
}

TEST_CASE("with libraries every chart has a figure, numbered in order", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const Json tensors = sample::tensors();
  const std::string page = render(rows, &tensors, "/* libraries */");
  CHECK(count(page, "<figure") == ordinary_charts());
  CHECK(page.find("Figure 1. Accuracy against effective bits.") < page.find("Figure 2. "));
  CHECK(has(page, "Figure " + std::to_string(ordinary_charts()) + ". "));
  CHECK_FALSE(has(page, "Not drawn"));
  CHECK_FALSE(has(page, "{{"));
}

TEST_CASE("a text has its own figure and columns and misses none", "[fast]") {
  const std::vector<Json> rows = sample::text_rows();
  const Json tensors = sample::tensors();
  const std::string page = render(rows, &tensors, "/* libraries */");
  CHECK(has(page, "Figure 1. Bits per character against effective bits."));
  CHECK_FALSE(has(page, "id=\"fig-accuracy\""));
  CHECK_FALSE(has(page, "Not drawn"));
  CHECK(has(page, "<button type=\"button\">Bits per character</button>"));
  CHECK(has(page, "Lose 0.01 bits per character or more"));
  CHECK(has(page, "<small>["));
  CHECK(has(page, "<td>my.mac</td>"));
}

TEST_CASE("a ranking of layers stands before its experiment, that before the points", "[fast]") {
  const std::vector<Json> rows = sample::sensitivity_rows();
  const Json experiment = sample::experiment();
  for (const char* libraries : {"", "/* libraries */"}) {
    const std::string page = render(rows, nullptr, libraries, &experiment);
    CHECK(has(page, "<h1>lenet on glyphs: which layer breaks first</h1>"));
    const std::size_t ranking = page.find("Layers, the most sensitive first</h2>");
    CHECK(page.find(": lowest SQNR: ") < ranking);
    const std::size_t section = page.find("Which layer breaks first?</h2>");
    CHECK(ranking < section);
    CHECK(section < page.find("All points</h2>"));
    CHECK(has(page, "<li>mxfp4: conv2 is the most sensitive layer.</li>"));
    CHECK(has(page, "Of 2 predictions 1 holds, 1 fails."));
    CHECK(has(page, "<td class=\"verdict fails\">fails</td>"));
    CHECK(has(page, "<td>15.9</td>"));
  }
  const std::string page = render(rows, nullptr, "/* libraries */", &experiment);
  CHECK(has(page, "Figure 1. Sensitivity of each layer: output SQNR."));
  CHECK(has(page, "Figure 2. Sensitivity of each layer: top-1."));
  CHECK_FALSE(has(page, "id=\"fig-sensitivity-bits\""));
}

TEST_CASE("layers of a quantized recipe have a title and a ranking of their own", "[fast]") {
  std::vector<Json> rows = sample::sensitivity_rows();
  rows.resize(7);
  for (Json& row : rows) {
    Json& recipe = row["point"]["recipe"];
    recipe["roles"]["weight"] = recipe["roles"]["activation"] = {{"format", "int4"}};
    recipe["layers"][0]["roles"] = {{"weight", nullptr}, {"activation", nullptr}};
  }
  rows[6]["point"]["recipe"]["layers"] = Json::array();
  const std::string page = render(rows, nullptr, "");
  CHECK(has(page, "<h1>lenet on glyphs: which layer is worth keeping wide</h1>"));
  CHECK(has(page, "Layers, the highest SQNR first</h2>"));
  CHECK(has(page, ": highest SQNR: "));
  CHECK_FALSE(has(page, "The configuration with the fewest bits"));
}

TEST_CASE("the charts of an experiment are its own figures", "[fast]") {
  const std::vector<Json> rows = sample::sensitivity_rows();
  const Json experiment = sample::experiment();
  const std::string page = render(rows, nullptr, "/* libraries */", &experiment);
  CHECK(page.find("Figure E1. A dense line and its law.") < page.find("Figure E5. "));
  CHECK(page.find("Figure E5. ") < page.find("Figure 1. "));
  CHECK(count(page, "data-chart=\"experiment\"") == 5);
  CHECK(has(page, "\"experiment\":[{\"kind\":\"line\""));
  CHECK_FALSE(has(render(rows, nullptr, "", &experiment), "<figure"));
}

TEST_CASE("an experiment without rows is all its page says", "[fast]") {
  const Json experiment = sample::experiment();
  const std::string page = render({}, nullptr, "/* libraries */", &experiment);
  CHECK(has(page, "<h1>Experiment sensitivity</h1>"));
  CHECK(has(page, "seed 0 · numerics version 1"));
  CHECK(has(page, "Figure E5. "));
  CHECK_FALSE(has(page, "All points"));
  CHECK_FALSE(has(page, "Not drawn"));
  CHECK_FALSE(has(page, "{{"));
  CHECK(has(page, "</main>"));
  const std::string bare = render({}, nullptr, "", &experiment);
  CHECK_FALSE(has(bare, "<figure"));
  CHECK(count(bare, "built without its charting libraries") == 1);
}

TEST_CASE("a section of the page is kept or left out", "[fast]") {
  const std::string page = "a{{#b}}c{{/b}}d";
  CHECK(with_section(page, "b", true) == "acd");
  CHECK(with_section(page, "b", false) == "ad");
  CHECK(with_section(page, "x", false) == page);
  CHECK(with_section("{{/b}}{{#b}}", "b", false) == "{{/b}}{{#b}}");
}

TEST_CASE("the page asks nothing of the network", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const std::string page = render(rows, nullptr, embedded_assets().libraries);
  CHECK(has(page, "default-src 'none'"));
  CHECK_FALSE(has(page, "src=\"http"));
  CHECK_FALSE(has(page, "<link rel=\"stylesheet\""));
  CHECK(count(page, "<script") == count(page, "</script>"));
}

TEST_CASE("hostile names stay text", "[fast]") {
  std::vector<Json> rows = sample::rows();
  for (Json& row : rows) row = sample::poisoned(row);
  for (const Json& row : sample::sensitivity_rows()) rows.push_back(sample::poisoned(row));
  const Json tensors = sample::poisoned(sample::tensors());
  const Json experiment = sample::poisoned(sample::experiment());
  const std::string page = render(rows, &tensors, "/* libraries */", &experiment);
  CHECK(count(page, "<script") == 3);
  CHECK(count(page, "</script>") == 3);
  CHECK_FALSE(has(page, "<img"));
  CHECK(count(page, "<!--") == 1);
  CHECK(has(page, "&lt;/script&gt;&lt;script&gt;window.hacked=1"));
}

TEST_CASE("figures without data are named, not drawn", "[fast]") {
  const std::vector<Json> rows = {sample::rows()[0]};
  const std::string page = render(rows, nullptr, "/* libraries */");
  CHECK(count(page, "<figure") == 0);
  CHECK(has(page,
            "Not drawn: Accuracy against effective bits (no quantized configuration has a measured "
            "accuracy); "));
  CHECK(has(page, "∞"));
}

TEST_CASE("the page opens with the best points, then what is not finite, then figures", "[fast]") {
  std::vector<Json> rows = sample::rows();
  rows.push_back(sample::not_finite_row());
  rows.back()["notes"] = {"blocks stop at a tap"};
  const std::string page = render(rows, nullptr, "/* libraries */");
  const std::size_t best = page.find("Best points</h2>"),
                    lost = page.find("NaN and infinite values</h2>");
  CHECK(best < lost);
  CHECK(lost < page.find("Figures</h2>"));
  CHECK(has(page, "conv2: 1,200 of 40,000 results infinite: accumulator overflow (float16"));
  CHECK(has(page, "<li>blocks stop at a tap"));
  CHECK(has(page, "; blocks stop at a tap</td>"));
  CHECK(has(page, "<td class=\"why\">"));
  CHECK(has(page, "<td class=\"n lost\" data-v=\"-1e9\">NaN</td>"));
  CHECK(page.find("Predictions that failed") < page.find("Tensors without a fitted distribution"));
  CHECK_FALSE(has(render(sample::rows(), nullptr, ""), "NaN and infinite values</h2>"));
}

TEST_CASE("best points show the range of seeds, failed predictions and what is left out",
          "[fast]") {
  std::vector<Json> rows;
  for (const int seed : {0, 1}) {
    Json row = sample::row(1, &sample::kFormats[10], &sample::kFormats[10], "neutral.exact");
    row["point"]["recipe"]["seed"] = seed;
    row["metrics"]["top1"] = 0.96 - 0.01 * seed;
    row["metrics"]["difference"] = -0.02 - 0.01 * seed;
    row["metrics"]["sqnr_db"] = 10.0;
    row["predicted"]["sqnr_db"] = 16.25;
    rows.push_back(row);
  }
  rows.push_back(sample::row(2, &sample::kFormats[8], &sample::kFormats[8], "neutral.exact"));
  const std::string page = render(rows, nullptr, "");
  const std::string best = page.substr(page.find("Best points</h2>"));
  const std::string table = best.substr(0, best.find("</table>"));
  CHECK(count(table, "<tr") == 2);
  CHECK(has(table, "<th scope=\"row\">int4</th>"));
  CHECK(has(table, "−2.50 <small>seeds −3.00 to −2.00</small>"));
  CHECK(has(table, "16.2 <small class=\"verdict fails\">fails</small></td>"));
  CHECK(has(table, "Configurations that lose more than 10 points are left out."));
  rows[0]["predicted"]["sqnr_db"] = rows[1]["predicted"]["sqnr_db"] = 10.1;
  CHECK_FALSE(has(render(rows, nullptr, ""), "fails</small>"));
}

TEST_CASE("the table of points has the SQNR at the best gain where rows have one", "[fast]") {
  std::vector<Json> rows = {sample::rows()[5], sample::rows()[6]};
  CHECK_FALSE(has(render(rows, nullptr, ""), "SQNR at best gain, dB"));
  rows[0]["metrics"]["sqnr_gained_db"] = 14.94;
  rows[0]["predicted"]["sqnr_gained_db"] = 16.2;
  const std::string page = render(rows, nullptr, "");
  CHECK(has(page, "SQNR at best gain, dB</button>"));
  CHECK(has(page, "data-v=\"14.94\">14.9 <small>predicted 16.2</small></td>"));
  // Outputs that differ by a gain alone: rows, which hold no infinity, have null.
  rows[0]["metrics"]["sqnr_gained_db"] = nullptr;
  rows[0]["metrics"]["gain"] = 0.5;
  rows[0]["predicted"].erase("sqnr_gained_db");
  CHECK(has(render(rows, nullptr, ""), "data-v=\"1000000000\">inf</td>"));
  rows[0]["metrics"]["gain"] = nullptr;
  CHECK_FALSE(has(render(rows, nullptr, ""), ">inf</td>"));
}

TEST_CASE("a prediction that is withheld gives its reason, one without the unit says so",
          "[fast]") {
  std::vector<Json> rows = {sample::rows()[5], sample::rows()[6]};
  rows[0]["predicted"]["sqnr_db"] = nullptr;
  rows[0]["predicted"]["left_out"] = "zero points are not modelled";
  rows[1]["point"]["recipe"]["gemms"]["fprop"]["unit"] = "nvidia.h100.wgmma.e4m3.f32";
  const std::string page = render(rows, nullptr, "/* libraries */");
  CHECK(has(page, "– <small class=\"why\">zero points are not modelled</small>"));
  CHECK(has(page, "<small>unit left out</small>"));
  CHECK(has(page,
            "Predictions exclude the rounding noise of these units: nvidia.h100.wgmma.e4m3.f32."));
}

TEST_CASE("rows of any shape give a page", "[fast]") {
  const std::vector<Json> none;
  const std::vector<Json> odd = {Json(),
                                 Json::array(),
                                 {{"layers", {1, nullptr, {{"sqnr_db", "x"}}}}},
                                 {{"predicted", {{"tensors", {2, {{"fitted", 3}}}}}}}};
  for (const auto& rows : {none, odd}) {
    CHECK(has(render(rows, nullptr, "/* libraries */"), "</html>"));
    CHECK(has(render(rows, nullptr, ""), "</html>"));
  }
}

TEST_CASE("seeds, networks and other rules appear as columns only where they differ", "[fast]") {
  std::vector<Json> rows = {sample::rows()[1], sample::rows()[1]};
  const auto table = [&rows] { return points_table(report_rows_of(rows)); };
  CHECK_FALSE(has(table(), "seed"));
  rows[1]["point"]["seed"] = 1;
  CHECK(has(table(), "seed 0"));
  rows[1]["point"]["net"] = "mlp";
  CHECK(has(table(), "net mlp"));
  rows[1]["point"]["recipe"]["roles"]["vector"] = {{"format", "float16"}};
  CHECK(has(table(), "vector float16"));
}

TEST_CASE("a template is filled once", "[fast]") {
  CHECK(fill_template("a {{x}} b {{y}} {{z}} {{", {{"x", "{{y}}"}, {"y", "2"}}) ==
        "a {{y}} b 2 {{z}} {{");
}

TEST_CASE("a chart that is no chart is named", "[fast]") {
  std::vector<std::string> absent;
  CHECK_THROWS_WITH(figures_html({{"mine", "{"}}, Json::object(), {}, absent),
                    Catch::Contains("chart 'mine': expected a JSON object with usermeta"));
}

TEST_CASE("every embedded chart reads a known data set", "[fast]") {
  const Json data = chart_datasets({}, nullptr);
  REQUIRE_FALSE(embedded_assets().charts.empty());
  for (const Asset& chart : embedded_assets().charts) {
    CAPTURE(chart.name);
    const Json meta = Json::parse(chart.text)["usermeta"];
    const bool own = chart.name == "experiment";  // drawn from experiment.json
    CHECK((own || data.contains(meta["data"].get<std::string>())));
    CHECK_FALSE(meta["title"].get<std::string>().empty());
    CHECK_FALSE(meta["caption"].get<std::string>().empty());
    CHECK((own || meta.contains("quiet") || meta.contains("empty")));
  }
}

}  // namespace html_test
