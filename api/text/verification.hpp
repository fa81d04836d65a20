// What `numemu verify` prints: text, JSON and JUnit's XML.
#pragma once
#include <string>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

std::string verify_text(const Verified&);
Json verify_json(const Verified&);
/// One test case for each class of records; a class with mismatches is a failure, which has the
/// first mismatch and the rules.
std::string verify_junit(const Verified&);

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

}  // namespace numemu::api
