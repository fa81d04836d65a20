// The options that name an operation or a unit, whose records a command makes or answers.
#pragma once
#include "api/oracle.hpp"
#include "cli/options.hpp"

namespace numemu::cli {

/// Adds --unit and --op and what belongs to either.
void add_subject(Command&, api::VectorOptions&);
/// Notes on stderr which formats short names of --op stand for.
void note_subject_names(const api::VectorOptions&);

}  // namespace numemu::cli
