// The required keys of a line of a rows file, checked before any other use.
#pragma once
#include <string>

#include "formats/error.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// A line that no run wrote like this: not strict JSON (a repeated key, a zero byte), or with a
/// wrong digest.
class DamagedRow : public Error {
 public:
  using Error::Error;
};

/// A row without a digest, in one line of JSON, with its digest added as the last key: the SHA-256
/// of the canonical JSON (RFC 8785) of everything else.
std::string with_digest(const std::string& line);

/// A line that names its key and numerics version: enough to identify the row. Throws
/// DamagedRow, or Error, naming file and line. Rows of earlier programs have no digest.
Json parse_identity(const std::string& line, const std::string& path, std::size_t number);
/// Throws Error naming file, line and the first key of the schema (version 1) that is missing or of
/// another type; without a digest, also a key that no earlier program wrote.
void check_schema(const Json& row, const std::string& path, std::size_t number);
/// Both.
Json parse_row(const std::string& line, const std::string& path, std::size_t number);

}  // namespace numemu::experiments
