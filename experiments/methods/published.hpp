// Which claim a finding belongs to: publications speak of float32, so few bits are a contrast.
#pragma once
#include <string>
#include <string_view>
#include <utility>

namespace numemu::experiments {

/// The key in float32, "few bits" in every other format or recipe.
inline std::string published_in(std::string_view format, std::string claim) {
  return format == "float32" ? std::move(claim) : "few bits";
}

}  // namespace numemu::experiments
