#include "experiments/report/shared_notes.hpp"

#include <algorithm>

#include "experiments/report/report_row.hpp"
#include "formats/joined.hpp"

namespace numemu::experiments {

std::vector<SharedNote> shared_notes(const std::vector<ReportRow>& records) {
  std::vector<SharedNote> out;
  for (const ReportRow& r : records) {
    const std::vector<std::string>&notes = r.row->notes, &kinds = r.row->note_kinds;
    for (std::size_t i = 0; i < notes.size(); ++i) {
      const auto found = std::ranges::find(out, notes[i], &SharedNote::text);
      if (found != out.end()) {
        found->names.push_back(r.name);
        continue;
      }
      out.push_back({notes[i], {r.name}});
      if (kinds.size() == notes.size()) out.back().kind = kinds[i];
    }
  }
  return out;
}

std::vector<std::vector<SharedNote>> by_kind(const std::vector<SharedNote>& notes) {
  std::vector<std::vector<SharedNote>> out;
  for (const SharedNote& note : notes) {
    const auto found = std::ranges::find_if(
        out, [&](const auto& kind) { return note.kind != "other" && kind[0].kind == note.kind; });
    if (found == out.end()) {
      out.push_back({note});
    } else {
      found->push_back(note);
    }
  }
  return out;
}

std::string listed_names(const std::vector<std::string>& names, std::size_t most) {
  // One more costs no more room than saying that there is one.
  return joined_first(names, "; ", names.size() == most + 1 ? names.size() : most);
}

}  // namespace numemu::experiments
