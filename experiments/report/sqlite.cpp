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

template <class T>
struct Field {
  const char* name;
  bool is_text;
  ReportCell (*cell)(const T&);
};

ReportCell cell_of(const std::string& text) { return text_cell(text); }
ReportCell cell_of(const Member<double>& number) { return number_cell(number); }
ReportCell cell_of(const Member<std::int64_t>& count) {
  return count ? ReportCell(static_cast<double>(*count)) : ReportCell();
}
ReportCell cell_of(const Member<Verdict>& verdict) {
  return verdict ? text_cell(to_string(*verdict)) : ReportCell();
}
ReportCell cell_of(const Member<bool>& flag) {
  return flag ? ReportCell(*flag ? "true" : "false") : ReportCell();
}

template <class M>
constexpr bool kIsText = std::same_as<M, std::string> || std::same_as<M, Member<Verdict>> ||
                         std::same_as<M, Member<bool>>;

template <auto member>
struct Pointed;
template <class S, class V, V S::*member>
struct Pointed<member> {
  using Struct = S;
  static constexpr bool is_text = kIsText<V>;
};

/// The column of a member.
template <auto member>
constexpr auto field(const char* name) {
  using T = typename Pointed<member>::Struct;
  return Field<T>{name, Pointed<member>::is_text,
                  [](const T& item) { return cell_of(item.*member); }};
}
/// Of the fit of a tensor.
template <auto member>
constexpr Field<RowTensor> fit_field(const char* name) {
  return {name, Pointed<member>::is_text, [](const RowTensor& tensor) {
            return tensor.fitted ? cell_of((*tensor.fitted).*member) : ReportCell();
          }};
}

constexpr Field<RowLayer> kLayerFields[] = {field<&RowLayer::name>("name"),
                                            field<&RowLayer::gemm>("gemm"),
                                            field<&RowLayer::unit>("unit"),
                                            field<&RowLayer::sqnr_db>("sqnr_db"),
                                            field<&RowLayer::predicted_db>("predicted_db"),
                                            field<&RowLayer::left_out>("left_out"),
                                            field<&RowLayer::verdict>("verdict"),
                                            field<&RowLayer::overflow>("overflow"),
                                            field<&RowLayer::underflow>("underflow")};
constexpr Field<RowTensor> kTensorFields[] = {field<&RowTensor::layer>("layer"),
                                              field<&RowTensor::role>("role"),
                                              field<&RowTensor::format>("format"),
                                              field<&RowTensor::n>("n"),
                                              field<&RowTensor::measured_mse>("measured_mse"),
                                              field<&RowTensor::measured_db>("measured_db"),
                                              field<&RowTensor::empirical_mse>("empirical_mse"),
                                              field<&RowTensor::empirical_db>("empirical_db"),
                                              field<&RowTensor::verdict>("empirical_verdict"),
                                              fit_field<&RowFit::family>("fitted_family"),
                                              fit_field<&RowFit::ks>("fitted_ks"),
                                              fit_field<&RowFit::threshold>("fitted_threshold"),
                                              fit_field<&RowFit::accepted>("fitted_accepted"),
                                              fit_field<&RowFit::db>("fitted_db"),
                                              fit_field<&RowFit::verdict>("fitted_verdict")};

std::string placeholders(std::size_t n) {
  std::string out = "?";
  for (std::size_t i = 1; i < n; ++i) out += ",?";
  return out;
}

/// One table with a line for every item of each row.
template <class T, std::size_t N>
void write_items(Database& database, const std::string& table, const Field<T> (&fields)[N],
                 const std::vector<Record>& records, const std::vector<T>& (*items)(const Row&)) {
  std::string columns = "position INTEGER NOT NULL REFERENCES rows(position)";
  for (const Field<T>& field : fields) {
    columns += fmt::format(", {} {}", field.name, field.is_text ? "TEXT" : "REAL");
  }
  database.run(fmt::format("CREATE TABLE {} ({})", table, columns));
  const std::string insert = fmt::format("INSERT INTO {} VALUES ({})", table, placeholders(N + 1));
  for (const Record& record : records) {
    for (const T& item : items(*record.row)) {
      std::vector<ReportCell> cells = {static_cast<double>(record.position)};
      for (const Field<T>& field : fields) cells.push_back(field.cell(item));
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
    columns += fmt::format(", \"{}\" {}", column.name, column.is_text ? "TEXT" : "REAL");
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
  write_items(database, "layers", kLayerFields, records, layers_of);
  write_items(database, "tensors", kTensorFields, records, tensors_of);
  database.run("COMMIT");
  database.publish();
}

}  // namespace numemu::experiments
