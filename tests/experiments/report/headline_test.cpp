// The headline counts losses, names the cheapest safe point, and survives rows without numbers.
#include "experiments/report/findings.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"

using namespace numemu;
using namespace numemu::experiments;
using Json = nlohmann::ordered_json;

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

}  // namespace

TEST_CASE("headline of four points", "[fast]") {
  const std::vector<Json> rows = {baseline(), row(14, 8, 0.9801), row(12, 6, 0.9771),
                                  row(11, 5, 0.9755), row(10, 4, 0.9)};
  const std::vector<Record> records = read_records(rows);
  const std::string text = joined(headline(records));
  CHECK(text.find("reaches 98.00 % top-1 on 10,000 images (95 % interval 97.70 to 98.30 %)") !=
        text.npos);
  CHECK(text.find("Of 4 quantized configurations, 2 lose less than 0.5 points, 1 that or more, and "
                  "1 is undecided") != text.npos);
  CHECK(text.find(
            "are 6.00 (weights 6.00, activations 6.00) bits per element: int6, rne, saturate") !=
        text.npos);
  CHECK(labels_by_loss(records, Verdict::holds) == std::vector<std::string>{"int8", "int6"});
  CHECK(labels_by_loss(records, Verdict::undecided) == std::vector<std::string>{"int5"});
  CHECK(labels_by_loss(records, Verdict::fails) == std::vector<std::string>{"int4"});
}

TEST_CASE("an interval that reaches over the limit decides nothing", "[fast]") {
  Json wide = row(14, 8, 0.975), unknown = row(12, 6, 0.979);
  wide["metrics"]["difference_ci95"] = {-0.0287, 0.0188};
  unknown["metrics"].erase("difference_ci95");
  const std::vector<Json> rows = {baseline(), wide, unknown};
  const std::vector<Record> records = read_records(rows);
  CHECK(labels_by_loss(records, Verdict::undecided) == std::vector<std::string>{"int8", "int6"});
  CHECK(labels_by_loss(records, Verdict::fails).empty());
}

TEST_CASE("a sum compared with itself is not among the predictions", "[fast]") {
  const std::vector<Json> rows = sample::rows();
  const Verdicts verdicts = judge_predictions(read_records(rows));
  REQUIRE(verdicts.empirical.compared() > 0);
  CHECK(joined(prediction_sentences(verdicts)).find("empirical") == std::string::npos);
}

TEST_CASE("headline of a text speaks of bits per character", "[fast]") {
  std::vector<Json> rows = sample::text_rows();
  for (std::size_t i = 1; i < rows.size(); ++i)
    rows[i]["metrics"]["bits_per_character"] = 2.1 + 0.004 * static_cast<double>(i);
  const std::vector<Record> records = read_records(rows);
  const std::string text = joined(headline(records));
  CHECK(text.find(
            "char-transformer on text reaches 2.1000 bits per character on 10,000 characters") !=
        text.npos);
  CHECK(text.find("Of 4 quantized configurations, 2 lose less than 0.01 bits per character") !=
        text.npos);
  CHECK(text.find("top-1") == text.npos);
  CHECK(labels_by_loss(records, Verdict::holds) ==
        std::vector<std::string>{"mxint8", "mxfp8_e4m3"});
  CHECK(cheapest_safe(records) == &records[1]);  // as wide as the second, and better
}

TEST_CASE("a loss of exactly half a point is not small", "[fast]") {
  Json exact = row(10, 4, 0.975);
  exact["metrics"]["difference"] = -0.005;
  const std::vector<Json> rows = {exact};
  CHECK(labels_by_loss(read_records(rows), Verdict::holds).empty());
}

TEST_CASE("the baseline belongs to the same network, data and seed", "[fast]") {
  Json other = baseline(), mine = baseline(), point = row(10, 4, 0.9);
  other["point"]["seed"] = 1;
  mine["point"]["seed"] = 2;
  point["point"]["seed"] = 2;
  const std::vector<Json> rows = {other, mine, point};
  const std::vector<Record> records = read_records(rows);
  CHECK(find_baseline(records, records[2]) == &records[1]);
  Json foreign = point;
  foreign["point"]["net"] = "mlp";
  const std::vector<Json> foreign_rows = {other, foreign};
  const std::vector<Record> foreign_records = read_records(foreign_rows);
  CHECK(find_baseline(foreign_records, foreign_records[1]) == nullptr);
}

TEST_CASE("among equal bits the better accuracy is named", "[fast]") {
  const std::vector<Json> rows = {baseline(), row(12, 6, 0.978, "first"),
                                  row(12, 6, 0.979, "second")};
  const std::vector<Record> records = read_records(rows);
  REQUIRE(cheapest_safe(records) == &records[2]);
}

TEST_CASE("no rows, and rows without numbers", "[fast]") {
  for (const std::vector<Json>& rows : {std::vector<Json>{}, {Json::object()}, {baseline()}}) {
    const std::vector<Record> records = read_records(rows);
    CHECK(joined(headline(records)).find("No quantized configuration") != std::string::npos);
    CHECK(cheapest_safe(records) == nullptr);
    CHECK(conditions(records) == "nothing quantized");
  }
}

TEST_CASE("conditions name every rounding, overflow and scale rule", "[fast]") {
  Json other = row(10, 4, 0.9);
  other["point"]["recipe"]["roles"]["activation"]["rounding"] = "rtz";
  const std::vector<Json> rows = {row(10, 4, 0.9), other};
  CHECK(conditions(read_records(rows)) ==
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
  const std::vector<Record> records = read_records(rows);
  CHECK(labels_by_loss(records, Verdict::holds) ==
        std::vector<std::string>{"int8", "int4 on exact", "int6"});
  CHECK(labels_by_loss(records, Verdict::fails) ==
        std::vector<std::string>{"int4 on f32.sequential"});
}

TEST_CASE("best points lose least for their bits, and hold the cheapest safe one", "[fast]") {
  std::vector<Json> rows = {baseline(),        row(14, 8, 0.98), row(13, 7, 0.979),
                            row(12, 6, 0.978), row(11, 5, 0.97), row(10, 4, 0.96),
                            row(9, 3, 0.5),    row(8, 2, 0.2),   row(7, 8.5, 0.975)};
  const std::vector<Record> records = read_records(rows);
  std::vector<std::size_t> places;
  for (const Record* r : best_points(records)) places.push_back(r->position);
  CHECK(places == std::vector<std::size_t>{5, 4, 3, 2, 1});  // 3 and 2 bits lose far too much
  CHECK(best_points(records, 2).size() == 2);
  // A luckier point with fewer bits whose interval is wide is not safe.
  rows[5]["metrics"]["difference"] = 0.001;
  rows[5]["metrics"]["difference_ci95"] = {-0.02, 0.022};
  const std::vector<Record> lucky = read_records(rows);
  REQUIRE(cheapest_safe(lucky) == &lucky[3]);
  CHECK(best_points(lucky).back() == &lucky[3]);
  rows.resize(1);
  CHECK(best_points(read_records(rows)).empty());
}

TEST_CASE("notes of several rows stand once", "[fast]") {
  std::vector<Json> rows = {baseline(), row(14, 8, 0.98), row(10, 4, 0.9)};
  rows[1]["notes"] = {"blocks stop at a tap"};
  rows[2]["notes"] = {"blocks stop at a tap", "half are negative"};
  const auto notes = shared_notes(read_records(rows));
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].names == std::vector<std::string>{"int8", "int4"});
  CHECK(listed_names({"a", "b", "c", "d"}) == "a, b, c, d");
  CHECK(listed_names({"a", "b", "c", "d", "e"}) == "a, b, c and 2 more");
}
