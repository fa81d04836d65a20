// The help of --metric.
#pragma once
#include <string>

namespace numemu::cli {

std::string metric_help();

}  // namespace numemu::cli
