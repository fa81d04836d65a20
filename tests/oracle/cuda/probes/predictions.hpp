// The results of the rules for the probes, as a document prints them before a GPU is recorded.
#pragma once
#include <iosfwd>
#include <string>

namespace numemu::oracle::recording {

/// Markdown: each open question and its rivals; for example instructions of the chip ("H100") the
/// probes that tell the preset and the rivals of that question apart, with the results of each;
/// the ids of all its probes.
void print_predictions(std::ostream&, const std::string& chip);

}  // namespace numemu::oracle::recording
