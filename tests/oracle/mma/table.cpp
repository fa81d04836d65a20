// Formats the tables of golden vectors.
#include "tests/oracle/mma/table.hpp"

#include <cstdio>

namespace numemu::oracle::mma {
namespace {

std::string line(const char* what, const char* unit, const char* way, const std::string& records,
                 const std::string& matches, const std::string& mismatches) {
  char text[256];
  std::snprintf(text, sizeof text, "%-75s %-37s %-12s %8s %8s %10s\n", what, unit, way,
                records.c_str(), matches.c_str(), mismatches.c_str());
  return text;
}

}  // namespace

void Table::add(const std::string& what, const std::string& unit, Way way, const Tally& tally) {
  lines_ += line(what.c_str(), unit.c_str(), to_string(way), std::to_string(tally.records),
                 std::to_string(tally.matches), std::to_string(tally.mismatches()));
  if (!tally.first.empty()) lines_ += "    " + tally.first + "\n";
  ++rows_;
  records_ += tally.records;
  mismatches_ += tally.mismatches();
}

void Table::fail(const std::string& what, const std::string& why) {
  lines_ += what + ": " + why + "\n";
  ++failures_;
}

void Table::print() const {
  const std::string heading =
      line("file", "unit", "computed by", "records", "matches", "mismatches");
  std::fputs((heading + lines_ + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string Table::totals() const {
  return std::to_string(rows_) + " lines, " + std::to_string(records_) + " records, " +
         std::to_string(mismatches_) + " mismatches, " + std::to_string(failures_) + " failures";
}

}  // namespace numemu::oracle::mma
