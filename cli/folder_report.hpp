// What `numemu verify` prints of folders of recordings: text, JSON and JUnit's XML.
#pragma once
#include <string>
#include <vector>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

/// `folder` is the name of the folder; one test case for each file and each conversion.
std::string folder_text(const api::VerifiedFolder&);
Json folder_json(const api::VerifiedFolder&);
std::string folder_junit(const api::VerifiedFolder&, const std::string& folder);

/// Of the large runs of a folder; one test case for each.
std::string hash_line(const oracle::HashReplay&);
Json hashes_json(const std::vector<oracle::HashReplay>&);
std::string hashes_junit(const std::vector<oracle::HashReplay>&, const std::string& folder);

}  // namespace numemu::cli
