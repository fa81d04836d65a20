// The notes of rows, each once, with the names of the rows that have it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "experiments/report/report_row.hpp"

namespace numemu::experiments {

/// A note and the names of the rows that have it.
struct SharedNote {
  std::string text;
  std::vector<std::string> names;
  std::string kind = "other";  ///< policies::NoteKind; "other" in rows of earlier programs
};
/// The notes of all rows, each once, in order of appearance.
std::vector<SharedNote> shared_notes(const std::vector<ReportRow>&);
/// The notes of each kind, in order of appearance. One whose kind is "other" stands alone.
std::vector<std::vector<SharedNote>> by_kind(const std::vector<SharedNote>&);
/// "int8 on exact; int4 on exact and 3 more": names hold commas.
std::string listed_names(const std::vector<std::string>& names, std::size_t most = 3);

}  // namespace numemu::experiments
