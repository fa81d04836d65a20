// The effects that predictions of noise omit, and the layers without a prediction.
#pragma once
#include <string>
#include <vector>

#include "experiments/predict/layer_noise.hpp"
#include "policies/notes/notes.hpp"

namespace numemu::experiments {

/// The model follows what rounds, masks and transforms operands and stored tensors. From the first
/// layer on with noise that it omits (tables of policies, quantizers that are not the file's,
/// edges, infinities) the prediction becomes NaN and `left_out` gives the reason; likewise where a
/// unit's register may overflow, or did when the network ran, or its products are not exact.
void leave_out(LayerPrediction&, const policies::BoundRecipe&, const std::vector<TensorNoise>&);

/// Sentences for readers, of what no layer's figure shows: quantized layers with the same weight,
/// whose errors are equal and not independent; operators that choose elements by their values,
/// where noise may change the choice.
std::vector<policies::Note> model_notes(const policies::BoundRecipe&);

}  // namespace numemu::experiments
