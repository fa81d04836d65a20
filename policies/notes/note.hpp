// A note for readers of results: a sentence, and what it is about.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::policies {

/// Notes of one kind differ in names and numbers alone.
enum class NoteKind : std::uint8_t {
  other,
  stages,
  training_keys,
  scale_elements,
  lost_signs,
  wider_codes,
  samples_apart,
  ranges,
  quantizers,
  calibration_key,
  tables,
  lost_nan,
  saturated,
  shared_weights,
  choices,
  baseline,
  calibration_data,
  few_samples,
  top5,
  odd_samples,
  left_out_samples,
  first_output,
};

/// As rows have it: "scale elements".
std::string_view to_string(NoteKind);

struct Note {
  NoteKind kind = NoteKind::other;
  std::string text;
  friend bool operator==(const Note&, const Note&) = default;
};

/// Sentences that are all of one kind.
std::vector<Note> notes_of(NoteKind, std::vector<std::string> texts);
/// The sentences alone.
std::vector<std::string> texts_of(const std::vector<Note>&);

}  // namespace numemu::policies
