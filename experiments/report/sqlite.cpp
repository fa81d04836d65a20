// The rows as one SQLite file: tables rows, layers and tensors, joined by the row's position.
#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "experiments/report/columns.hpp"
#include "experiments/report/report.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// Built in memory, so that the file appears whole or not at all.
class Database {
 public:
  explicit Database(const std::string& path) : path_(path) {
    sqlite3* raw = nullptr;
    const int code = sqlite3_open(":memory:", &raw);
    handle_.reset(raw);
    check(code);
  }

  void publish() {
    sqlite3_int64 size = 0;
    const std::unique_ptr<unsigned char, void (*)(void*)> bytes(
        sqlite3_serialize(handle_.get(), "main", &size, 0), sqlite3_free);
    if (!bytes) check(SQLITE_NOMEM);
    write_atomically(
        path_, {{reinterpret_cast<const char*>(bytes.get()), static_cast<std::size_t>(size)}});
  }

  void run(const std::string& sql) {
    check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  }

  void insert(const std::string& sql, const std::vector<ReportCell>& cells) {
    sqlite3_stmt* raw = nullptr;
    check(sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr));
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(raw, sqlite3_finalize);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const int at = static_cast<int>(i) + 1;
      if (const double* number = std::get_if<double>(&cells[i])) {
        check(sqlite3_bind_double(raw, at, *number));
      } else if (const std::string* text = std::get_if<std::string>(&cells[i])) {
        check(sqlite3_bind_text(raw, at, text->data(), static_cast<int>(text->size()),
                                SQLITE_TRANSIENT));
      }
    }
    if (sqlite3_step(raw) != SQLITE_DONE) check(sqlite3_errcode(handle_.get()));
  }

 private:
  void check(int code) const {
    if (code == SQLITE_OK) return;
    throw Error(fmt::format("cannot write '{}': {}", path_,
                            handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory"));
  }

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

/// A column of `layers` or `tensors`, and the key it is read from, in the object itself or in its
/// `parent`.
struct Field {
  const char* name;
  bool is_text;
  const char* parent;
  const char* key;
};

constexpr Field kLayerFields[] = {{"name", true, nullptr, "name"},
                                  {"gemm", true, nullptr, "gemm"},
                                  {"unit", true, nullptr, "unit"},
                                  {"sqnr_db", false, nullptr, "sqnr_db"},
                                  {"predicted_db", false, nullptr, "predicted_db"},
                                  {"left_out", true, nullptr, "left_out"},
                                  {"verdict", true, nullptr, "verdict"},
                                  {"overflow", false, nullptr, "overflow"},
                                  {"underflow", false, nullptr, "underflow"}};
constexpr Field kTensorFields[] = {{"layer", true, nullptr, "layer"},
                                   {"role", true, nullptr, "role"},
                                   {"format", true, nullptr, "format"},
                                   {"n", false, nullptr, "n"},
                                   {"measured_mse", false, nullptr, "measured_mse"},
                                   {"measured_db", false, nullptr, "measured_db"},
                                   {"empirical_mse", false, nullptr, "empirical_mse"},
                                   {"empirical_db", false, nullptr, "empirical_db"},
                                   {"empirical_verdict", true, nullptr, "verdict"},
                                   {"fitted_family", true, "fitted", "family"},
                                   {"fitted_ks", false, "fitted", "ks"},
                                   {"fitted_threshold", false, "fitted", "threshold"},
                                   {"fitted_accepted", true, "fitted", "accepted"},
                                   {"fitted_db", false, "fitted", "db"},
                                   {"fitted_verdict", true, "fitted", "verdict"}};

ReportCell field_cell(const Field& field, const Json& item) {
  const Json* owner = field.parent ? json_at(item, {field.parent}) : &item;
  if (!owner) return {};
  return field.is_text ? text_cell(json_text(*owner, {field.key}))
                       : number_cell(json_number(*owner, {field.key}));
}

std::string placeholders(std::size_t n) {
  std::string out = "?";
  for (std::size_t i = 1; i < n; ++i) out += ",?";
  return out;
}

/// One table with a line for every element of each row's array at `path`.
template <std::size_t N>
void write_items(Database& database, const std::string& table, const Field (&fields)[N],
                 const std::vector<Record>& records, std::initializer_list<const char*> path) {
  std::string columns = "position INTEGER NOT NULL REFERENCES rows(position)";
  for (const Field& field : fields) {
    columns += fmt::format(", {} {}", field.name, field.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  const std::string insert = fmt::format("INSERT INTO {} VALUES ({})", table, placeholders(N + 1));
  for (const Record& record : records) {
    const Json* items = json_at(*record.row, path);
    if (!items || !items->is_array()) continue;
    for (const Json& item : *items) {
      std::vector<ReportCell> cells = {static_cast<double>(record.position)};
      for (const Field& field : fields) cells.push_back(field_cell(field, item));
      database.insert(insert, cells);
    }
  }
}

void write_rows(Database& database, const std::vector<Record>& records) {
  std::string columns = "position INTEGER PRIMARY KEY";
  const std::vector<Column> exported = exported_columns(records);
  for (const Column& column : exported) {
    columns += fmt::format(", \"{}\" {}", column.name, column.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE rows ({}, json TEXT NOT NULL)", columns));
  const std::string insert =
      fmt::format("INSERT INTO rows VALUES ({})", placeholders(exported.size() + 2));
  for (const Record& record : records) {
    std::vector<ReportCell> cells = {static_cast<double>(record.position)};
    for (const Column& column : exported) cells.push_back(column.value(record));
    cells.emplace_back(record.row->dump(-1, Json::NotUtf8::replace));
    database.insert(insert, cells);
  }
}

void write_meta(Database& database, const ReportInput& input) {
  database.run("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT)");
  const std::string sweep = input.sweep ? input.sweep->dump(-1, Json::NotUtf8::replace) : "null";
  database.insert("INSERT INTO meta VALUES (?,?)", {ReportCell("sweep"), ReportCell(sweep)});
}

}  // namespace

void write_sqlite(const ReportInput& input, const std::string& path) {
  Database database(path);
  database.run("BEGIN");
  const std::vector<Record> records = read_records(*input.rows);
  write_meta(database, input);
  write_rows(database, records);
  write_items(database, "layers", kLayerFields, records, {"layers"});
  write_items(database, "tensors", kTensorFields, records, {"predicted", "tensors"});
  database.run("COMMIT");
  database.publish();
}

}  // namespace numemu::experiments
