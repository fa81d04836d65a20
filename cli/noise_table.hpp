// The noise of layers on the terminal: measured beside predicted.
#pragma once
#include <string>

#include "formats/storage/json.hpp"

namespace numemu::cli {

/// "31.42", "-" for null.
std::string decibels(const Json& value);

/// Prints "layers", and the output's fidelity in "metrics" and "predicted", of a row or of what
/// `infer --json` has. `of_noise`: the samples of SQNR and predictions; `of_counts`: those of
/// overflow, underflow and invalid.
void print_noise(const Json& row, const std::string& of_noise, const std::string& of_counts);

}  // namespace numemu::cli
