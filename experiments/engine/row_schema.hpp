// What a line of a rows file must hold before anything reads it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace numemu::experiments {

/// A line that names its key and numerics version: enough to tell whose row it is. Throws Error
/// naming file and line.
nlohmann::ordered_json parse_identity(const std::string& line, const std::string& path,
                                      std::size_t number);
/// Throws Error naming file, line and the first key of the schema (version 1) that is missing or of
/// another type.
void check_schema(const nlohmann::ordered_json& row, const std::string& path, std::size_t number);
/// Both.
nlohmann::ordered_json parse_row(const std::string& line, const std::string& path,
                                 std::size_t number);

}  // namespace numemu::experiments
