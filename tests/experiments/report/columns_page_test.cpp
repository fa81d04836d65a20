// docs/report-columns.md is the generated page, and names every column of a SQLite file.
#include <sqlite3.h>

#include <memory>

#include "experiments/report/columns.hpp"
#include "experiments/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/report/scratch.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/files.hpp"

namespace columns_page_test {

using namespace numemu::experiments;
using numemu::Json;

TEST_CASE("columns page: docs/report-columns.md is the generated page", "[fast]") {
  // To rewrite it: ./numemu report --columns > docs/report-columns.md
  CHECK(numemu::test::read_file(NUMEMU_SOURCE "/docs/report-columns.md") == columns_page());
}

TEST_CASE("columns page: every column of the file has a meaning", "[fast]") {
  const Scratch scratch("columns-page");
  const Json sweep = sample::sweep();
  write_sqlite({&sweep, kept_rows(sample::rows()), nullptr}, scratch / "report.sqlite");
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open_v2((scratch / "report.sqlite").c_str(), &raw, SQLITE_OPEN_READONLY,
                          nullptr) == SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> database(raw, sqlite3_close);
  const std::string page = columns_page();
  std::size_t columns = 0;
  for (const std::string table : {"rows", "layers", "tensors", "meta"}) {
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_prepare_v2(raw, ("SELECT * FROM " + table).c_str(), -1, &statement, nullptr) ==
            SQLITE_OK);
    const std::size_t from = page.find("## " + table + "\n");
    REQUIRE(from != page.npos);
    const std::string section = page.substr(from, page.find("\n## ", from) - from);
    for (int i = 0; i < sqlite3_column_count(statement); ++i, ++columns) {
      const std::string name = sqlite3_column_name(statement, i);
      if (name.starts_with("score_")) continue;  // of the score NAME
      INFO(table << "." << name);
      const std::size_t line = section.find("| `" + name + "` | ");
      REQUIRE(line != section.npos);
      const std::string row = section.substr(line, section.find('\n', line) - line);
      CHECK(row.size() > name.size() + std::string("| `` | number |  |").size());
    }
    sqlite3_finalize(statement);
  }
  CHECK(columns > 70);
}

}  // namespace columns_page_test
