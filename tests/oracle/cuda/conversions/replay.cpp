#include "tests/oracle/cuda/conversions/replay.hpp"

#include <filesystem>
#include <set>
#include <stdexcept>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/recording/whole_file.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr const char* kHeader =
    "file\tunit\tinstr\tfrom\tto\trecord_bytes\tcount\tinputs\tseed\thash\tlanes\tsource";
enum Column {
  kFile,
  kUnit,
  kInstruction,
  kFrom,
  kTo,
  kRecordBytes,
  kCount,
  kInputs,
  kSeed,
  kHash,
  kLanes
};

ConversionTally tally(const Conversion& c, const ConversionRule& rule, const std::string& records) {
  ConversionTally result{&c, rule};
  const auto* at = reinterpret_cast<const std::uint8_t*>(records.data());
  const auto size = static_cast<std::size_t>(record_bytes(c));
  result.records = static_cast<int>(records.size() / size);
  for (int i = 0; i < result.records; ++i, at += size) {
    const auto in = static_cast<std::uint32_t>(load_code(at, info(c.a).bytes));
    const auto recorded =
        static_cast<std::uint32_t>(load_code(at + info(c.a).bytes, info(c.d).bytes));
    const std::uint32_t expected = convert(c, in, rule);
    if (expected == recorded) continue;
    if (result.mismatches++ == 0) {
      result.in = in;
      result.recorded = recorded;
      result.expected = expected;
    }
  }
  return result;
}

/// The conversion of a row, whose other columns must say what it is.
const Conversion& conversion_of(const std::string& where, const std::vector<std::string>& row) {
  const int number = find_conversion(row[kInstruction]);
  if (number < 0)
    throw std::runtime_error(where + ": expected a conversion of conversions.def, got '" +
                             row[kInstruction] + "'");
  const Conversion& c = conversions()[static_cast<std::size_t>(number)];
  const auto expect = [&](Column column, const std::string& expected) {
    if (row[column] != expected)
      throw std::runtime_error(where + ": " + c.name + " has '" + expected + "' in column " +
                               std::to_string(column + 1) + ", got '" + row[column] + "'");
  };
  expect(kFrom, info(c.a).name);
  expect(kTo, info(c.d).name);
  expect(kRecordBytes, std::to_string(record_bytes(c)));
  return c;
}

/// The records of a row of the table, whose columns must agree with each other.
std::string records_of(const std::string& folder, const std::string& where,
                       const std::vector<std::string>& row, const Conversion& c) {
  const std::string path = folder + "/" + row[kFile];
  const std::uint64_t count = cell_number(where, row[kCount], 10);
  if (count == 0 || count > kRecordedBytes)
    throw std::runtime_error(where + ": expected 1 to " + std::to_string(kRecordedBytes) +
                             " records, got " + row[kCount]);
  std::string records = read_whole_file(path);
  if (records.size() != count * static_cast<std::size_t>(record_bytes(c)))
    throw std::runtime_error(path + ": expected " + row[kCount] + " records of " +
                             std::to_string(record_bytes(c)) + " bytes, has " +
                             std::to_string(records.size()) + " bytes");
  return records;
}

}  // namespace

std::uint64_t run_hash(const Conversion& c, const std::vector<std::uint32_t>& in,
                       const ConversionRule& rule) {
  std::uint64_t hash = kFnvBasis;
  for (const std::uint32_t x : in) {
    const std::uint32_t code = convert(c, x, rule);
    std::uint32_t answer = 0;
    for (int lane = 0; lane < c.lanes(); ++lane) answer |= code << (answer_bits(c) * lane);
    std::uint8_t bytes[4];
    store_code(bytes, 4, answer);
    hash = fnv1a(hash, bytes, sizeof bytes);
  }
  return hash;
}

std::vector<ConversionTally> replay_conversions(const std::string& folder) {
  const std::string table = folder + "/conversions.tsv";
  std::vector<ConversionTally> tallies;
  if (!std::filesystem::exists(table)) return tallies;
  std::set<std::string> seen;
  int line = 1;
  for (const std::vector<std::string>& row : read_table(table, kHeader)) {
    const std::string where = table + ":" + std::to_string(++line);
    const Conversion& c = conversion_of(where, row);
    if (!seen.insert(c.name).second)
      throw std::runtime_error(where + ": " + c.name + " stands twice");
    const std::string records = records_of(folder, where, row, c);
    const std::uint64_t hash = cell_number(where, row[kHash], 16);
    const std::uint64_t lanes = cell_number(where, row[kLanes], 10);
    const std::vector<std::uint32_t> in = conversion_inputs(c, cell_number(where, row[kSeed], 10));
    if (std::to_string(in.size()) != row[kInputs])
      throw std::runtime_error(where + ": expected " + std::to_string(in.size()) +
                               " inputs of that seed, got '" + row[kInputs] + "'");
    for (const ConversionRule& rule : conversion_rules(c)) {
      ConversionTally result = tally(c, rule, records);
      result.lanes = lanes;
      result.whole_run = result.mismatches == 0 && run_hash(c, in, rule) == hash;
      tallies.push_back(result);
    }
  }
  return tallies;
}

int print_tallies(const std::vector<ConversionTally>& tallies, std::FILE* out) {
  int wrong = 0;
  for (const ConversionTally& t : tallies) {
    const bool first = t.rule.question.empty();
    if (first) std::fprintf(out, "cvt %s: %d records\n", t.conversion->name, t.records);
    if (first && t.lanes != 0)
      std::fprintf(out, "  the lanes disagree for %llu inputs\n",
                   static_cast<unsigned long long>(t.lanes));
    std::fprintf(out, "  %-48s %6d mismatches", t.rule.name.c_str(), t.mismatches);
    if (t.mismatches != 0)
      std::fprintf(out, ", the first: of 0x%x 0x%x, by the rule 0x%x", t.in, t.recorded,
                   t.expected);
    else
      std::fprintf(out, t.whole_run ? ", nor in the whole run" : ", but the whole run differs");
    std::fprintf(out, "\n");
    wrong += first && (!t.whole_run || t.lanes != 0);
  }
  return wrong;
}

}  // namespace numemu::oracle::recording
