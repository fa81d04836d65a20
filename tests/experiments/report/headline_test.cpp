// The headline counts losses, names the cheapest safe point, and survives rows without numbers.
#include "experiments/report/headline.hpp"

#include "experiments/report/configurations.hpp"
#include "experiments/report/number_text.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/report/shared_notes.hpp"
#include "experiments/report/verdicts.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"

namespace headline_test {

using namespace numemu;
using namespace numemu::experiments;
namespace {

Json row(std::size_t format, double bits, double top1, const char* unit = "u") {
  Json out = sample::row(1, &sample::kFormats[format], &sample::kFormats[format], unit);
  out["bits"] = {{"weight", bits}, {"activation", bits}};
  out["metrics"]["top1"] = top1;
  out["metrics"]["difference"] = top1 - 0.98;
  out["metrics"]["difference_ci95"] = {top1 - 0.98 - 0.001, top1 - 0.98 + 0.001};
  return out;
}

Json baseline() {
  Json out = sample::row(0, nullptr, nullptr, "u");
  out["metrics"]["top1"] = 0.98;
  out["metrics"]["ci95"] = {0.977, 0.983};
  return out;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string out;
  for (const std::string& sentence : sentences) out += sentence + "\n";
  return out;
}

/// Places of the first rows of the best points.
std::vector<std::size_t> best_places(const std::vector<ReportRow>& records) {
  const std::vector<Configuration> all = configurations(records);
  std::vector<std::size_t> out;
  for (const Configuration* c : best_points(all).points) out.push_back(c->rows[0]->position);
  return out;
}

}  // namespace

TEST_CASE("headline of four points", "[fast]") {
  const std::vector<Json> rows = {baseline(), row(14, 8, 0.9801), row(12, 6, 0.9771),
                                  row(11, 5, 0.9755), row(10, 4, 0.9)};
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::string text = joined(headline(records));
  CHECK(text.find("reaches 98.00 % top-1 on 10,000 images (95 % interval 97.70 to 98.30 %)") !=
        text.npos);
  CHECK(
      text.find(
          "Of 4 quantized configurations, 2 lose less than 0.5 points, 1 loses that much or more, "
          "and 1 is undecided") != text.npos);
  CHECK(text.find("has 6.00 (weights 6.00, activations 6.00) bits per element: int6 on u, at") !=
        text.npos);
  CHECK(labels_by_loss(configurations(records), Verdict::holds) ==
        std::vector<std::string>{"int8", "int6"});
  CHECK(labels_by_loss(configurations(records), Verdict::undecided) ==
        std::vector<std::string>{"int5"});
  CHECK(labels_by_loss(configurations(records), Verdict::fails) ==
        std::vector<std::string>{"int4"});
}

TEST_CASE("an interval that reaches over the limit decides nothing", "[fast]") {
  Json wide = row(14, 8, 0.975), unknown = row(12, 6, 0.979);
  wide["metrics"]["difference_ci95"] = {-0.0287, 0.0188};
  unknown["metrics"].erase("difference_ci95");
  const std::vector<Json> rows = {baseline(), wide, unknown};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(labels_by_loss(configurations(records), Verdict::undecided) ==
        std::vector<std::string>{"int8", "int6"});
  CHECK(labels_by_loss(configurations(records), Verdict::fails).empty());
}

TEST_CASE("results inside a network that are not finite are told from outputs", "[fast]") {
  Json inside = sample::not_finite_row();
  inside["metrics"]["sqnr_db"] = 20.0;
  inside["not_finite"]["test"]["outputs"]["nan"] = 0;
  inside["not_finite"]["test"]["outputs"]["infinite"] = 0;
  std::vector<Json> rows = {baseline(), inside};
  std::vector<ReportRow> records = report_rows_of(rows);
  std::string text = joined(headline(records));
  CHECK(text.find("NaN or infinite results inside, finite outputs: int4") != text.npos);
  CHECK(text.find("NaN or infinite outputs") == text.npos);
  rows = {baseline(), sample::not_finite_row()};
  records = report_rows_of(rows);
  text = joined(headline(records));
  CHECK(text.find("NaN or infinite outputs: int4") != text.npos);
  CHECK(text.find("results inside") == text.npos);
}

TEST_CASE("a sum compared with itself is not among the predictions", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const Verdicts verdicts = judge_predictions(report_rows_of(rows));
  REQUIRE(verdicts.empirical.compared() > 0);
  CHECK(joined(prediction_sentences(verdicts)).find("empirical") == std::string::npos);
}

TEST_CASE("headline of a text speaks of bits per character", "[fast]") {
  std::vector<Json> rows = sample::text_rows();
  for (std::size_t i = 1; i < rows.size(); ++i)
    rows[i]["metrics"]["bits_per_character"] = 2.1 + 0.004 * static_cast<double>(i);
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::string text = joined(headline(records));
  CHECK(text.find(
            "char-transformer on text reaches 2.1000 bits per character on 10,000 characters") !=
        text.npos);
  CHECK(text.find("Of 4 quantized configurations, 2 lose less than 0.01 bits per character") !=
        text.npos);
  CHECK(text.find("top-1") == text.npos);
  CHECK(labels_by_loss(configurations(records), Verdict::holds) ==
        std::vector<std::string>{"mxint8", "mxfp8_e4m3"});
  CHECK(cheapest_safe(records) == &records[1]);  // as wide as the second, and better
}

TEST_CASE("a loss of exactly half a point is not small", "[fast]") {
  Json exact = row(10, 4, 0.975);
  exact["metrics"]["difference"] = -0.005;
  const std::vector<Json> rows = {exact};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(labels_by_loss(configurations(records), Verdict::holds).empty());
}

TEST_CASE("the baseline belongs to the same network, data and seed", "[fast]") {
  Json other = baseline(), mine = baseline(), point = row(10, 4, 0.9);
  other["point"]["seed"] = 1;
  mine["point"]["seed"] = 2;
  point["point"]["seed"] = 2;
  const std::vector<Json> rows = {other, mine, point};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(find_baseline(records, records[2]) == &records[1]);
  Json foreign = point;
  foreign["point"]["net"] = "mlp";
  const std::vector<Json> foreign_rows = {other, foreign};
  const std::vector<ReportRow> foreign_records = report_rows_of(foreign_rows);
  CHECK(find_baseline(foreign_records, foreign_records[1]) == nullptr);
}

TEST_CASE("among equal bits the better accuracy is named", "[fast]") {
  const std::vector<Json> rows = {baseline(), row(12, 6, 0.978, "first"),
                                  row(12, 6, 0.979, "second")};
  const std::vector<ReportRow> records = report_rows_of(rows);
  REQUIRE(cheapest_safe(records) == &records[2]);
}

TEST_CASE("no rows, and rows without numbers", "[fast]") {
  for (const std::vector<Json>& rows : {std::vector<Json>{}, {Json::object()}, {baseline()}}) {
    const std::vector<ReportRow> records = report_rows_of(rows);
    CHECK(joined(headline(records)).find("No quantized configuration") != std::string::npos);
    CHECK(cheapest_safe(records) == nullptr);
    CHECK(conditions(records) == "nothing quantized");
  }
}

TEST_CASE("conditions name every rounding, overflow and scale rule", "[fast]") {
  Json other = row(10, 4, 0.9);
  other["point"]["recipe"]["roles"]["activation"]["rounding"] = "rtz";
  const std::vector<Json> rows = {row(10, 4, 0.9), other};
  CHECK(conditions(report_rows_of(rows)) ==
        "rounding rne, rtz; overflow saturate; scale absmax per channel (weights), absmax per "
        "tensor (activations)");
}

TEST_CASE("thousands stand apart", "[fast]") {
  CHECK(grouped(999.0) == "999");
  CHECK(grouped(1000.0) == "1,000");
  CHECK(grouped(1234567.0) == "1,234,567");
  CHECK(grouped(std::nullopt) == "–");
}

TEST_CASE("labels name the unit where formats repeat", "[fast]") {
  const std::vector<Json> rows = {baseline(),
                                  row(14, 8, 0.98, "neutral.exact"),
                                  row(14, 8, 0.98, "neutral.f32.sequential"),
                                  row(10, 4, 0.98, "neutral.exact"),
                                  row(10, 4, 0.9, "neutral.f32.sequential"),
                                  row(12, 6, 0.98, "neutral.exact")};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(labels_by_loss(configurations(records), Verdict::holds) ==
        std::vector<std::string>{"int8", "int4 on exact", "int6"});
  CHECK(labels_by_loss(configurations(records), Verdict::fails) ==
        std::vector<std::string>{"int4 on f32.sequential"});
}

TEST_CASE("best points lose least for their bits, and hold the cheapest safe one", "[fast]") {
  std::vector<Json> rows = {baseline(),        row(14, 8, 0.98), row(13, 7, 0.979),
                            row(12, 6, 0.978), row(11, 5, 0.97), row(10, 4, 0.96),
                            row(9, 3, 0.5),    row(8, 2, 0.2),   row(7, 8.5, 0.975)};
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(best_places(records) == std::vector<std::size_t>{5, 4, 3, 2, 1});
  const std::vector<Configuration> all = configurations(records);
  CHECK(best_points(all).left_out ==
        "Configurations that lose more than 10 points are left out.");  // those of 3 and 2 bits
  CHECK(best_points(all, 2).points.size() == 2);
  CHECK(best_points(all, 2).left_out.ends_with("Only the 2 with the most bits are shown."));
  // A luckier point with fewer bits whose interval is wide is not safe.
  rows[5]["metrics"]["difference"] = 0.001;
  rows[5]["metrics"]["difference_ci95"] = {-0.02, 0.022};
  const std::vector<ReportRow> lucky = report_rows_of(rows);
  REQUIRE(cheapest_safe(lucky) == &lucky[3]);
  CHECK(best_places(lucky).back() == 3);
  rows.resize(6);
  const std::vector<ReportRow> good = report_rows_of(rows);
  CHECK(best_points(configurations(good)).left_out.empty());
  rows.resize(1);
  CHECK(best_places(report_rows_of(rows)).empty());
}

TEST_CASE("of units that lose alike the one with the higher SQNR is named", "[fast]") {
  std::vector<Json> rows = {baseline(), row(12, 6, 0.979, "first"), row(12, 6, 0.979, "second")};
  for (const std::size_t better : {1U, 2U}) {
    rows[better]["metrics"]["sqnr_db"] = 40.0;
    rows[3 - better]["metrics"]["sqnr_db"] = 20.0;
    const std::vector<ReportRow> records = report_rows_of(rows);
    CHECK(cheapest_safe(records) == &records[better]);
    CHECK(best_places(records) == std::vector<std::size_t>{better});
  }
  rows[1]["metrics"]["sqnr_db"] = nullptr;
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(cheapest_safe(records) == &records[2]);
}

TEST_CASE("seeds of a point are one configuration, judged by all of them", "[fast]") {
  const auto seeded = [](std::size_t format, double bits, double top1, int seed) {
    Json out = row(format, bits, top1);
    out["point"]["recipe"]["seed"] = seed;
    return out;
  };
  // int8 loses little for each seed, int6 for the lucky one alone, int4 for none.
  std::vector<Json> rows = {baseline()};
  for (const int seed : {0, 1, 2}) {
    rows.push_back(seeded(14, 8, 0.979 + 0.0001 * seed, seed));
    rows.push_back(seeded(12, 6, seed == 2 ? 0.9799 : 0.97, seed));
    rows.push_back(seeded(10, 4, 0.95 - 0.01 * seed, seed));
  }
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::vector<Configuration> all = configurations(records);
  REQUIRE(all.size() == 4);
  CHECK(all[1].mean.name == "int8");
  CHECK(*all[3].mean.judged.value == Approx(0.94));
  CHECK(*all[3].loss() == Approx(0.04));
  CHECK(all[3].losses().first == Approx(0.03));
  CHECK(all[3].losses().second == Approx(0.05));
  CHECK_FALSE(all[3].mean.judged.difference_low);
  CHECK(loses_little(all[1]) == Verdict::holds);
  CHECK(loses_little(all[2]) == Verdict::undecided);
  CHECK(loses_little(all[3]) == Verdict::fails);
  CHECK(best_places(records) == std::vector<std::size_t>{3, 2, 1});
  const std::string text = joined(headline(records));
  CHECK(text.find("bits per element: int8 on u, at 97.91 % in the mean of 3 seeds.") != text.npos);
  CHECK(
      text.find("Of 3 quantized configurations, 1 loses less than 0.5 points, 1 loses that much or "
                "more, and 1 is undecided: the paired 95 % interval contains the limit, or seeds "
                "differ.") != text.npos);
  // A seed without a measurement leaves no mean.
  rows[2]["metrics"].erase("difference");
  rows[2]["metrics"].erase("baseline_top1");
  const std::vector<ReportRow> torn = report_rows_of(rows);
  CHECK(loses_little(configurations(torn)[2]) == Verdict::none);
}

TEST_CASE("the headline counts what the lists name", "[fast]") {
  std::vector<Json> rows = {baseline()};
  for (const char* unit : {"neutral.exact", "neutral.f32.sequential"}) {
    rows.push_back(row(14, 8, 0.98, unit));
    rows.push_back(row(12, 6, 0.978, unit));
    rows.push_back(row(10, 4, 0.9, unit));
  }
  const std::vector<ReportRow> records = report_rows_of(rows);
  CHECK(joined(headline(records))
            .find("Of 3 quantized configurations on 2 units, 2 lose less than 0.5 points "
                  "and 1 loses that much or more.") != std::string::npos);
}

TEST_CASE("the headline says so where most predictions fail", "[fast]") {
  std::vector<Json> rows = {baseline(), row(14, 8, 0.98), row(12, 6, 0.978), row(10, 4, 0.9)};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    rows[i]["metrics"]["sqnr_db"] = 20.0;
    rows[i]["predicted"]["sqnr_db"] = i < 3 ? 25.25 : 20.1;
  }
  const std::string sentence =
      "Of 3 predictions of the output's SQNR, 2 fail; the median distance is 5.25 dB.";
  CHECK(joined(headline(report_rows_of(rows))).find(sentence) != std::string::npos);
  rows[1]["predicted"]["sqnr_db"] = 20.2;
  CHECK(joined(headline(report_rows_of(rows))).find("predictions of") == std::string::npos);
}

TEST_CASE("notes are grouped by the kinds that rows name, those of earlier rows stand alone",
          "[fast]") {
  std::vector<Json> rows = {baseline(), row(14, 8, 0.98), row(10, 4, 0.9)};
  rows[1]["notes"] = {"blocks of mxfp4 are cut", "conv1 sees no sample"};
  rows[1]["note_kinds"] = {"scale elements", "odd samples"};
  rows[2]["notes"] = Json::array({"blocks of nvfp4 are cut"});
  const auto grouped = [&] { return by_kind(shared_notes(report_rows_of(rows))); };
  CHECK(grouped().size() == 3);  // a row without kinds
  rows[2]["note_kinds"] = Json::array({"scale elements"});
  REQUIRE(grouped().size() == 2);
  REQUIRE(grouped()[0].size() == 2);
  CHECK(grouped()[0][1].text == "blocks of nvfp4 are cut");
  CHECK(grouped()[0][1].names == std::vector<std::string>{"int4"});
  CHECK(grouped()[1][0].text == "conv1 sees no sample");
  rows[2]["note_kinds"] = {"scale elements", "too many"};
  CHECK(grouped().size() == 3);
}

TEST_CASE("notes of several rows stand once", "[fast]") {
  std::vector<Json> rows = {baseline(), row(14, 8, 0.98), row(10, 4, 0.9)};
  rows[1]["notes"] = {"blocks stop at a tap"};
  rows[2]["notes"] = {"blocks stop at a tap", "half are negative"};
  const auto notes = shared_notes(report_rows_of(rows));
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].names == std::vector<std::string>{"int8", "int4"});
  CHECK(listed_names({"a", "b", "c", "d"}) == "a; b; c; d");
  CHECK(listed_names({"a", "b", "c", "d", "e"}) == "a; b; c and 2 more");
}

}  // namespace headline_test
