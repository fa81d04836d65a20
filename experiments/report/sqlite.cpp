// The rows as one SQLite file: tables rows, layers and tensors, joined by the row's position.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
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
    throw file_error(fmt::format("cannot write '{}': {}", path_,
                                 handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory"));
  }

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

std::vector<Field<RowLayer>> layer_fields() {
  using L = RowLayer;
  return {field<L, &L::name>("name"),
          field<L, &L::gemm>("gemm"),
          field<L, &L::unit>("unit"),
          field<L, &L::sqnr_db>("sqnr_db"),
          field<L, &L::predicted_db>("predicted_db"),
          field<L, &L::left_out>("left_out"),
          field<L, &L::verdict>("verdict"),
          field<L, &L::overflow>("overflow"),
          field<L, &L::underflow>("underflow")};
}

std::vector<Field<RowTensor>> tensor_fields() {
  using T = RowTensor;
  return {field<T, &T::layer>("layer"),
          field<T, &T::role>("role"),
          field<T, &T::format>("format"),
          field<T, &T::n>("n"),
          field<T, &T::measured_mse>("measured_mse"),
          field<T, &T::measured_db>("measured_db"),
          field<T, &T::empirical_mse>("empirical_mse"),
          field<T, &T::empirical_db>("empirical_db"),
          field<T, &T::verdict>("empirical_verdict"),
          field_of_part<T, &T::fitted, &RowFit::family>("fitted_family"),
          field_of_part<T, &T::fitted, &RowFit::ks>("fitted_ks"),
          field_of_part<T, &T::fitted, &RowFit::threshold>("fitted_threshold"),
          field_of_part<T, &T::fitted, &RowFit::accepted>("fitted_accepted"),
          field_of_part<T, &T::fitted, &RowFit::db>("fitted_db"),
          field_of_part<T, &T::fitted, &RowFit::verdict>("fitted_verdict")};
}

std::string placeholders(std::size_t n) {
  std::string out = "?";
  for (std::size_t i = 1; i < n; ++i) out += ",?";
  return out;
}

/// One table with a line for every item of each row.
template <class T>
void write_items(Database& database, const std::string& table, const std::vector<Field<T>>& fields,
                 const std::vector<Record>& records, const std::vector<T>& (*items)(const Row&)) {
  std::string columns = "position INTEGER NOT NULL REFERENCES rows(position)";
  for (const Field<T>& field : fields) {
    columns += fmt::format(", {} {}", field.name, field.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  const std::string insert =
      fmt::format("INSERT INTO {} VALUES ({})", table, placeholders(fields.size() + 1));
  for (const Record& record : records) {
    for (const T& item : items(*record.row)) {
      std::vector<ReportCell> cells = {static_cast<double>(record.position)};
      for (const Field<T>& field : fields) cells.push_back(field.value(item));
      database.insert(insert, cells);
    }
  }
}

const std::vector<RowLayer>& layers_of(const Row& row) { return row.layers; }
const std::vector<RowTensor>& tensors_of(const Row& row) { return row.predicted.tensors; }

void write_rows(Database& database, const std::vector<Record>& records) {
  std::string columns = "position INTEGER PRIMARY KEY";
  const std::vector<Column> exported = exported_columns(records);
  for (const Column& column : exported) {
    std::string name = column.name;  // that of an output may hold anything
    std::replace(name.begin(), name.end(), '"', '_');
    columns += fmt::format(", \"{}\" {}", name, column.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE rows ({}, json TEXT NOT NULL)", columns));
  const std::string insert =
      fmt::format("INSERT INTO rows VALUES ({})", placeholders(exported.size() + 2));
  for (const Record& record : records) {
    std::vector<ReportCell> cells = {static_cast<double>(record.position)};
    for (const Column& column : exported) cells.push_back(column.value(record));
    cells.emplace_back(to_json(*record.row).dump(-1, Json::NotUtf8::replace));
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
  write_items(database, "layers", layer_fields(), records, layers_of);
  write_items(database, "tensors", tensor_fields(), records, tensors_of);
  database.run("COMMIT");
  database.publish();
}

}  // namespace numemu::experiments
