// What `numemu verify FOLDER` prints: text, JSON and JUnit's XML.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/replay/conversion_judge.hpp"
#include "emu/oracle/replay/hash_judge.hpp"
#include "emu/oracle/replay/record_judge.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

struct FolderReport {
  oracle::RecordFolder folder;
  std::vector<oracle::Judgement> judgements;
  std::vector<oracle::ConversionVerdict> conversions;

  std::int64_t records() const;
  std::int64_t without_rule() const;
  std::int64_t mismatches() const;
  std::int64_t wrong_conversions() const;
  bool holds() const { return mismatches() == 0 && wrong_conversions() == 0; }
};

std::string folder_text(const FolderReport&);
Json folder_json(const FolderReport&);
/// One test case for each file and each conversion.
std::string folder_junit(const FolderReport&, const std::string& folder);

std::string hash_line(const oracle::HashVerdict&);
Json hashes_json(const std::vector<oracle::HashVerdict>&);
/// One test case for each large run.
std::string hashes_junit(const std::vector<oracle::HashVerdict>&, const std::string& folder);

}  // namespace numemu::cli
