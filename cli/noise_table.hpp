// The noise of layers on the terminal: measured beside predicted.
#pragma once
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::cli {

/// "31.42", "-" for null.
std::string decibels(const Json& value);

/// Prints "layers", and the output's fidelity in "metrics" and "predicted", of a row or of what
/// `infer --json` has.
void print_noise(const Json& row);

}  // namespace numemu::cli
