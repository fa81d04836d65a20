// The SQLite file holds the rows, their layers and their tensors.
#include <sqlite3.h>

#include <memory>

#include "experiments/report/columns.hpp"
#include "experiments/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"

namespace sqlite_test {

using namespace numemu::experiments;
using numemu::Json;

namespace {

/// All cells of a query; null as JSON null.
std::vector<std::vector<Json>> query(const std::string& file, const std::string& sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(raw, sqlite3_close);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(raw, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK);
  std::vector<std::vector<Json>> out;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    out.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const int type = sqlite3_column_type(statement, i);
      if (type == SQLITE_NULL) {
        out.back().emplace_back();
      } else if (type == SQLITE_TEXT) {
        out.back().emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, i)));
      } else {
        out.back().emplace_back(sqlite3_column_double(statement, i));
      }
    }
  }
  sqlite3_finalize(statement);
  return out;
}

Json cell_json(const ReportCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) return *number;
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

}  // namespace

TEST_CASE("sqlite equals the rows", "[fast]") {
  const Scratch scratch("sqlite");
  std::vector<Json> rows = sample::rows();
  rows[4] = sample::poisoned(rows[4]);
  const Json sweep = sample::sweep();
  const ReportInput input{&sweep, kept_rows(rows), nullptr};
  write_sqlite(input, scratch / "report.sqlite");
  write_sqlite(input, scratch / "report.sqlite");  // over an existing file
  CHECK(scratch.files() == 1);
  const std::string file = scratch / "report.sqlite";
  const std::vector<ReportRow> records = report_rows_of(rows);

  const auto stored = query(file, "SELECT * FROM rows ORDER BY position");
  REQUIRE(stored.size() == rows.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    REQUIRE(stored[i].size() == row_columns().size() + 2);
    CHECK(stored[i][0] == i);
    for (std::size_t c = 0; c < row_columns().size(); ++c) {
      CHECK(stored[i][c + 1] == cell_json(row_columns()[c].value(records[i])));
    }
    CHECK(stored[i].back().get<std::string>() == to_json(*records[i].row).dump());
  }

  const auto layers = query(file, "SELECT position, name, sqnr_db FROM layers ORDER BY rowid");
  REQUIRE(layers.size() == rows.size() * sample::kLayers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Json& layer = rows[i / 5]["layers"][i % 5];
    CHECK(layers[i][0] == i / 5);
    CHECK(layers[i][1] == layer["name"]);
    CHECK(layers[i][2] == layer["sqnr_db"]);
  }

  const auto tensors =
      query(file,
            "SELECT layer, role, n, measured_mse, fitted_family, fitted_ks, fitted_accepted "
            "FROM tensors WHERE position = 4 ORDER BY rowid");
  const Json& expected = rows[4]["predicted"]["tensors"];
  REQUIRE(tensors.size() == expected.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Json& t = expected[i];
    CHECK(tensors[i] == std::vector<Json>{t["layer"], t["role"], t["n"], t["measured_mse"],
                                          t["fitted"]["family"], t["fitted"]["ks"],
                                          t["fitted"]["accepted"].dump()});
  }
  CHECK(Json::parse(
            query(file, "SELECT value FROM meta WHERE name = 'sweep'")[0][0].get<std::string>()) ==
        sweep);
}

}  // namespace sqlite_test
