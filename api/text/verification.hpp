// What a verification found, as text, JSON and JUnit's XML; what is known about a record.
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

/// What is known about a record, in lines: of an operation where its exact result lies between two
/// codes; of a unit its steps, and how the result differs where another is given. Throws Error as
/// oracle::evaluate() does.
std::string explain_record(const oracle::Subject&, const oracle::Records& one);

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
