#include "emu/oracle/replay/conversion_judge.hpp"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <filesystem>
#include <set>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "formats/error.hpp"

namespace numemu::oracle {
namespace {

using recording::Conversion;

/// A row of the table, whose other columns must agree with the conversion.
struct Run {
  const Conversion* conversion;
  std::string unit;
  std::vector<std::uint8_t> records;
  std::vector<std::uint32_t> in;
  std::uint64_t hash = 0;
  std::int64_t lanes = 0;
};

void expect(const TableRow& row, const char* column, const std::string& expected) {
  if (row.text(column) != expected)
    throw Error(fmt::format("{}: {}: expected {} for {}, found '{}'", row.where, column, expected,
                            row.text("instr"), row.text(column)));
}

std::uint64_t number(const TableRow& row, const char* column, int base) {
  const std::string& digits = row.text(column);
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, base);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    throw Error(fmt::format("{}: {}: expected a number in base {}, found '{}'", row.where, column,
                            base, digits));
  return value;
}

Run read_run(const std::string& folder, const TableRow& row) {
  const int found = recording::find_conversion(row.text("instr"));
  if (found < 0)
    throw Error(
        fmt::format("{}: expected a known conversion, found '{}'", row.where, row.text("instr")));
  const Conversion& c = recording::conversions()[static_cast<std::size_t>(found)];
  expect(row, "from", info(c.a).name);
  expect(row, "to", info(c.d).name);
  expect(row, "record_bytes", std::to_string(record_bytes(c)));
  const std::int64_t count = row.number("count");
  if (count == 0 || count > recording::kRecordedBytes)
    throw Error(fmt::format("{}: count: expected 1 to {}, found {}", row.where,
                            recording::kRecordedBytes, count));
  Run run{&c, row.text("unit"), {}, {}, number(row, "hash", 16), row.number("lanes")};
  run.records = read_exactly(path_below(folder, row, row.text("file")), count * record_bytes(c),
                             fmt::format("{} records of {} bytes", count, record_bytes(c)));
  run.in = conversion_inputs(c, number(row, "seed", 10));
  expect(row, "inputs", std::to_string(run.in.size()));
  return run;
}

ConversionVerdict verdict_of(const Run& run, const ConversionRule& rule) {
  const Conversion& c = *run.conversion;
  ConversionVerdict v{.conversion = &c, .rule = rule, .unit = run.unit, .lanes = run.lanes};
  const int in_bytes = info(c.a).bytes, out_bytes = info(c.d).bytes;
  const auto size = static_cast<std::size_t>(record_bytes(c));
  for (std::size_t at = 0; at < run.records.size(); at += size) {
    const auto in = static_cast<std::uint32_t>(recording::load_code(&run.records[at], in_bytes));
    const auto recorded =
        static_cast<std::uint32_t>(recording::load_code(&run.records[at] + in_bytes, out_bytes));
    const std::uint32_t expected = converted(c, in, rule);
    ++v.records;
    if (expected == recorded || v.mismatches++ != 0) continue;
    v.in = in;
    v.recorded = recorded;
    v.expected = expected;
  }
  v.whole_run = v.mismatches == 0 && run_hash(c, run.in, rule) == run.hash;
  return v;
}

}  // namespace

std::uint64_t run_hash(const Conversion& c, const std::vector<std::uint32_t>& in,
                       const ConversionRule& rule) {
  std::uint64_t hash = recording::kFnvBasis;
  for (const std::uint32_t x : in) {
    const std::uint32_t code = converted(c, x, rule);
    std::uint32_t answer = 0;
    for (int lane = 0; lane < c.lanes(); ++lane) answer |= code << (answer_bits(c) * lane);
    std::uint8_t bytes[4];
    recording::store_code(bytes, 4, answer);
    hash = recording::fnv1a(hash, bytes, sizeof bytes);
  }
  return hash;
}

std::vector<ConversionVerdict> judge_conversions(const std::string& folder,
                                                 const std::string& only) {
  const std::string table = folder + "/conversions.tsv";
  if (!std::filesystem::exists(table)) return {};
  std::vector<TableRow> rows;
  std::set<std::string> seen;
  for (TableRow& row : read_table_rows(table)) {
    const std::string& name = row.text("instr");
    if (!seen.insert(name).second)
      throw Error(fmt::format("{}: {} appears twice", row.where, name));
    if (("cvt " + name).find(only) != std::string::npos) rows.push_back(std::move(row));
  }
  std::vector<std::vector<ConversionVerdict>> of_row(rows.size());
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < rows.size(); ++i) {
    try {
      const Run run = read_run(folder, rows[i]);
      for (const ConversionRule& rule : conversion_rules(*run.conversion))
        of_row[i].push_back(verdict_of(run, rule));
    } catch (...) {
#pragma omp critical
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  std::vector<ConversionVerdict> all;
  for (const auto& some : of_row) all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace numemu::oracle
