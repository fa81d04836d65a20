// A network from an ONNX file, and data whose samples have four places with classes, some of them
// ignored, with numbers, or without targets.
#pragma once
#include <string>
#include <vector>

#include "tests/files.hpp"

namespace numemu::experiments::testing {

constexpr std::int64_t kPlaces = 4, kFeatures = 3, kAnswers = 2, kPlaceSamples = 24;

/// Its settings "net" and "data"; `targets`: "classes", "values" or "none". With `quantizer` the
/// network has one of its own.
std::vector<std::string> write_places(const test::TemporaryFolder& folder,
                                      const std::string& targets, bool quantizer = false);

}  // namespace numemu::experiments::testing
