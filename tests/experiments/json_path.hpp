// The value at a path of keys such as "/point/net", with the members on the way where they are
// missing.
#pragma once
#include <sstream>
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::experiments {

inline Json& at_path(Json& root, const std::string& path) {
  std::istringstream keys(path.substr(1));
  Json* at = &root;
  for (std::string key; std::getline(keys, key, '/');) at = &(*at)[key];
  return *at;
}

}  // namespace numemu::experiments
