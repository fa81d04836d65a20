// What `numemu verify` prints: text, JSON and JUnit's XML.
#pragma once
#include <string>
#include <string_view>

#include "cli/verify_input.hpp"
#include "emu/oracle/explain.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

std::string verify_text(const Verified&, const oracle::Explanation&);
Json verify_json(const Verified&, const oracle::Explanation&);
/// One test case for each class of records; a class with mismatches is a failure, which has the
/// first mismatch and the rules.
std::string verify_junit(const Verified&, const oracle::Explanation&);

/// Text as XML has it, in attributes and elements; control characters are left out.
std::string xml_text(std::string_view);

}  // namespace numemu::cli
