// Prefixes errors of lower floors (unknown format, rounding, unit) with the key at fault.
#pragma once
#include <string>

#include "formats/error.hpp"
#include "formats/storage/json_reader.hpp"

namespace numemu::policies {

/// What `read` gives; an Error of it becomes "WHERE: KEY: ERROR", unless it begins so already.
template <class Read>
decltype(auto) at(const JsonReader& key, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    const std::string where = key.where() + ": ", text = error.what();
    if (text.starts_with(where)) throw;
    throw Error(where + text, error.kind());
  }
}

}  // namespace numemu::policies
