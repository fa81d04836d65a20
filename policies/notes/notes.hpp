// Notes for readers of results: effects of a recipe that its text does not show.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/calibrate/reference.hpp"
#include "policies/numerics/recipe_numerics.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::policies {

/// Notes of one kind differ in names and numbers alone.
enum class NoteKind : std::uint8_t {
  other,
  stages,
  training_keys,
  scale_elements,
  lost_signs,
  clipped,
  wider_codes,
  samples_apart,
  ranges,
  quantizers,
  calibration_key,
  tables,
  lost_nan,
  saturated,
  shared_weights,
  stacked_weights,
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

/// Short sentences, sorted, each once; layers with the same note share one. They depend only on the
/// recipe, the graph and the float32 values of the reference.
std::vector<Note> recipe_notes(const BoundRecipe&, const FloatReference&);
/// Notes by the reference on a batch, which is not kept: layer by layer, as a pass computes it.
std::vector<Note> recipe_notes(const BoundRecipe&, const std::vector<net::Tensor>& batch);

/// Of a recipe in inference: that it is the last one of a recipe with stages (`stage` > 0), and its
/// keys that act in training alone.
std::vector<Note> notes_on_training(const Recipe&, std::size_t stage);

/// Where weights are quantized: the tables (trained parameters of two axes or more) that no product
/// reads as its weight, which stay float32, with their share of the parameters; and the products of
/// stacks whose one operand is learned (MatMul, Einsum), which has the numerics of activations.
std::vector<Note> notes_on_tables(const BoundRecipe&);

/// "2 quantizers of its own, 3 weights stored as codes": what a network has of QuantizeLinear
/// followed by DequantizeLinear, and the file at `path` (.onnx, or .safetensors as `export` writes
/// it) of weights as codes. What is called float32 contains them. "" for neither.
std::string own_quantizers(const net::Graph&, const std::string& path);

/// Of a network with some of those, or with casts: how many, and that float32 contains them.
std::vector<std::string> notes_on_quantizers(const net::Graph&, const std::string& path);

/// Of a network of several outputs: that SQNR and predictions are those of the first. `more` ends
/// the sentence.
std::vector<std::string> notes_on_outputs(const net::Graph&, const std::string& more);

/// `named`: the key was set on purpose. Of a recipe none of whose scales depend on its key
/// `calibrate`.
std::vector<Note> notes_on_calibration(const BoundRecipe&, bool named);

/// Whether some layer has the key `edges`: calibration then gives scales of what is between
/// operators, too, whatever ranges fix.
bool quantizes_edges(const BoundRecipe&);

/// Layers whose forward products, since the counts were reset, had NaN among their operands in a
/// signed format that has none and makes its largest number of them, and those whose results ended
/// at an end of a register that saturates.
std::vector<Note> notes_on_counts(const RecipeNumerics&);

}  // namespace numemu::policies
