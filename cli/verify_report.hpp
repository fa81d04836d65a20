// What `numemu verify` prints: text, JSON and JUnit's XML.
#pragma once
#include <string>
#include <vector>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

std::string verify_text(const api::Verified&);
Json verify_json(const api::Verified&);
/// One test case for each class of records; a class with mismatches is a failure, which has the
/// first mismatch and the rules.
std::string verify_junit(const api::Verified&);

/// The same of folders. `folder` is the name of the folder; one test case for each file and each
/// conversion.
std::string folder_text(const api::VerifiedFolder&);
Json folder_json(const api::VerifiedFolder&);
std::string folder_junit(const api::VerifiedFolder&, const std::string& folder);

/// Of the large runs of a folder; one test case for each.
std::string hash_line(const oracle::HashReplay&);
Json hashes_json(const std::vector<oracle::HashReplay>&);
std::string hashes_junit(const std::vector<oracle::HashReplay>&, const std::string& folder);

/// A report of JUnit, which test runners read.
class Junit {
 public:
  /// A case; `failure` is empty where it passes. Text becomes harmless; that of `lines` keeps its
  /// lines where `whole_lines`.
  void add(const std::string& class_name, const std::string& name, const std::string& failure = "",
           const std::string& lines = "", bool whole_lines = false);
  /// "numemu verify WHAT" with the cases so far.
  std::string suite(const std::string& what) const;

 private:
  std::string cases_;
  std::int64_t tests_ = 0, failures_ = 0;
};

}  // namespace numemu::cli
