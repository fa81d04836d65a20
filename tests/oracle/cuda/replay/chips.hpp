// The chips that rules are written for.
#pragma once
#include <string>

namespace numemu::oracle::recording::replay {

/// "NVIDIA H100 80GB HBM3" -> "H100"; "" where no rule is known.
std::string chip_of(const std::string& gpu);

/// Every chip, for messages: "V100 T4 ...".
std::string chip_names();

}  // namespace numemu::oracle::recording::replay
