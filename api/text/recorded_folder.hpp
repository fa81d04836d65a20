// What `numemu verify` says of a folder of recordings: text, JSON and JUnit's XML.
#pragma once
#include <string>
#include <vector>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"

namespace numemu::api {

std::string folder_text(const VerifiedFolder&);
Json folder_json(const VerifiedFolder&);
/// `folder` is the name of the folder; one test case for each file and each conversion.
std::string folder_junit(const VerifiedFolder&, const std::string& folder);

/// Of one large run of a folder.
std::string hash_line(const oracle::HashReplay&);
Json hashes_json(const std::vector<oracle::HashReplay>&);
/// One test case for each.
std::string hashes_junit(const std::vector<oracle::HashReplay>&, const std::string& folder);

}  // namespace numemu::api
