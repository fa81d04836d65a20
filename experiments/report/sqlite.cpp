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
  return {field<L, &L::name>("name", "layer"),
          field<L, &L::gemm>("gemm", "product: fprop, dgrad, wgrad, qk, pv"),
          field<L, &L::unit>("unit", "its unit"),
          field<L, &L::sqnr_db>("sqnr_db", "SQNR at the output of the layer, dB"),
          field<L, &L::predicted_db>("predicted_db", "predicted SQNR, dB"),
          field<L, &L::left_out>("left_out", "why nothing is predicted"),
          field<L, &L::verdict>("verdict", "of the prediction: holds, undecided, fails"),
          field<L, &L::overflow>("overflow", "share of operands that overflow"),
          field<L, &L::underflow>("underflow", "share of operands that become 0")};
}

std::vector<Field<RowTensor>> tensor_fields() {
  using T = RowTensor;
  return {
      field<T, &T::layer>("layer", "layer"),
      field<T, &T::role>("role", "role of the tensor: weight, activation, ..."),
      field<T, &T::format>("format", "its format"),
      field<T, &T::n>("n", "elements"),
      field<T, &T::measured_mse>("measured_mse", "measured mean squared error"),
      field<T, &T::measured_db>("measured_db", "measured SQNR, dB"),
      field<T, &T::empirical_mse>("empirical_mse", "the error predicted from the float32 values"),
      field<T, &T::empirical_db>("empirical_db", "the same as SQNR, dB"),
      field<T, &T::verdict>("empirical_verdict", "whether it agrees"),
      field<T, &T::fitted, &RowFit::family>("fitted_family", "law that fits best"),
      field<T, &T::fitted, &RowFit::ks>("fitted_ks", "Kolmogorov-Smirnov distance to it"),
      field<T, &T::fitted, &RowFit::threshold>("fitted_threshold",
                                               "most distance of an accepted fit"),
      field<T, &T::fitted, &RowFit::accepted>("fitted_accepted", "true or false"),
      field<T, &T::fitted, &RowFit::db>("fitted_db", "SQNR predicted from the law, dB"),
      field<T, &T::fitted, &RowFit::verdict>("fitted_verdict", "of that prediction")};
}

std::string placeholders(std::size_t n) {
  std::string out = "?";
  for (std::size_t i = 1; i < n; ++i) out += ",?";
  return out;
}

/// One table with a line for every item of each row.
template <class T>
void write_items(Database& database, const std::string& table, const std::vector<Field<T>>& fields,
                 const std::vector<ReportRow>& records,
                 const std::vector<T>& (*items)(const Row&)) {
  std::string columns = "position INTEGER NOT NULL REFERENCES rows(position)";
  for (const Field<T>& field : fields) {
    columns += fmt::format(", {} {}", field.name, field.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  const std::string insert =
      fmt::format("INSERT INTO {} VALUES ({})", table, placeholders(fields.size() + 1));
  for (const ReportRow& record : records) {
    for (const T& item : items(*record.row)) {
      std::vector<ReportCell> cells = {static_cast<double>(record.position)};
      for (const Field<T>& field : fields) cells.push_back(field.value(item));
      database.insert(insert, cells);
    }
  }
}

const std::vector<RowLayer>& layers_of(const Row& row) { return row.layers; }
const std::vector<RowTensor>& tensors_of(const Row& row) { return row.predicted.tensors; }

void write_rows(Database& database, const std::vector<ReportRow>& records) {
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
  for (const ReportRow& record : records) {
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

template <class T>
std::string meaning_rows(const std::vector<Field<T>>& fields) {
  std::string out;
  for (const Field<T>& field : fields)
    out += fmt::format("| `{}` | {} | {} |\n", field.name, field.is_text ? "text" : "number",
                       field.meaning);
  return out;
}

}  // namespace

std::string columns_page() {
  constexpr const char* kHead = "| column | type | meaning |\n|---|---|---|\n";
  constexpr const char* kPosition =
      "| `position` | number | place of the row in the sweep, from 0 |\n";
  return fmt::format(
      "# Columns of report.csv and report.sqlite\n"
      "Generated: `./numemu report --columns > docs/report-columns.md`. Accuracies are shares from "
      "0 "
      "to 1; a cell is empty where a row does\nnot have the figure.\n\n"
      "## rows\nA line for each row; `report.csv` has these columns without `position` and "
      "`json`.\n\n{0}{1}{2}| `json` | text | the row as rows.jsonl has it |\n\n"
      "For each score NAME but top-1:\n\n{0}{3}\n"
      "## layers\nA line for each matrix product of each row.\n\n{0}{1}{4}\n"
      "## tensors\nA line for each quantized tensor whose error is predicted.\n\n{0}{1}{5}\n"
      "## meta\n{0}| `name` | text | `sweep` |\n| `value` | text | the sweep's canonical "
      "configuration as JSON |\n",
      kHead, kPosition, meaning_rows(row_columns()), meaning_rows(score_columns_of("NAME")),
      meaning_rows(layer_fields()), meaning_rows(tensor_fields()));
}

void write_sqlite(const ReportInput& input, const std::string& path) {
  Database database(path);
  database.run("BEGIN");
  const std::vector<ReportRow> records = report_rows(*input.rows);
  write_meta(database, input);
  write_rows(database, records);
  write_items(database, "layers", layer_fields(), records, layers_of);
  write_items(database, "tensors", tensor_fields(), records, tensors_of);
  database.run("COMMIT");
  database.publish();
}

}  // namespace numemu::experiments
