// Cold: a negligible share of any run (docs/build.md).
#include "policies/notes/note.hpp"

#include <utility>

namespace numemu::policies {

std::string_view to_string(NoteKind kind) {
  switch (kind) {
    case NoteKind::stages:
      return "stages";
    case NoteKind::training_keys:
      return "training keys";
    case NoteKind::scale_elements:
      return "scale elements";
    case NoteKind::lost_signs:
      return "lost signs";
    case NoteKind::wider_codes:
      return "wider codes";
    case NoteKind::samples_apart:
      return "samples apart";
    case NoteKind::ranges:
      return "ranges";
    case NoteKind::quantizers:
      return "quantizers";
    case NoteKind::calibration_key:
      return "calibration key";
    case NoteKind::tables:
      return "tables";
    case NoteKind::lost_nan:
      return "lost NaN";
    case NoteKind::saturated:
      return "saturated";
    case NoteKind::shared_weights:
      return "shared weights";
    case NoteKind::choices:
      return "choices";
    case NoteKind::baseline:
      return "baseline";
    case NoteKind::calibration_data:
      return "calibration data";
    case NoteKind::few_samples:
      return "few samples";
    case NoteKind::top5:
      return "top5";
    case NoteKind::odd_samples:
      return "odd samples";
    case NoteKind::left_out_samples:
      return "left out samples";
    case NoteKind::first_output:
      return "first output";
    case NoteKind::other:
      break;
  }
  return "other";
}

std::vector<Note> notes_of(NoteKind kind, std::vector<std::string> texts) {
  std::vector<Note> notes;
  for (std::string& text : texts) notes.push_back({kind, std::move(text)});
  return notes;
}

std::vector<std::string> texts_of(const std::vector<Note>& notes) {
  std::vector<std::string> texts;
  for (const Note& note : notes) texts.push_back(note.text);
  return texts;
}

}  // namespace numemu::policies
