// What identify prints of a finding.
#pragma once
#include <string>

#include "api/oracle.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

std::string identify_text(const api::Identified&);
std::string identify_json(const api::Identified&);

/// Of an instruction of a folder: a paragraph, or an object.
std::string finding_text(const oracle::RecordedUnit&, const oracle::Finding&);
Json finding_json(const oracle::RecordedUnit&, const oracle::Finding&);

}  // namespace numemu::cli
