// The predictions of the rules for the probes, as a document prints them before a GPU was
// measured.
#pragma once
#include <iosfwd>
#include <string>

namespace numemu::oracle::recording {

/// Markdown: each open question, its rivals, its probes, and for example instructions
/// of the chip a probe that separates each rival rule from the specification's, with both answers.
/// chip: as rules() takes it.
void print_predictions(std::ostream&, const std::string& chip);

}  // namespace numemu::oracle::recording
