// The effects that predictions of noise omit, and the layers without a prediction.
#pragma once
#include <string>
#include <vector>

#include "experiments/predict/layer_noise.hpp"
#include "policies/notes/note.hpp"

namespace numemu::experiments {

/// Decibels that the noise of units may take from a prediction, which does not count it.
inline constexpr double kMostUnitLoss = 0.5;

/// Whether a unit rounds so that predictions, which count exact sums, leave noise out; not for
/// those whose sums are exact or of float32.
bool unit_is_ignored(const std::string& unit);

/// The linear model follows the noise of rounding weights and the activations that a weight
/// multiplies. From the first layer on with noise that it omits (masks, roles vector and
/// output, products of two activations, shifted codes, blocks along the reduction, directed
/// rounding, infinities, batch normalisation by shifts) the prediction becomes NaN and `left_out`
/// gives the reason; likewise where nothing is quantized but a unit rounds, where a unit's own
/// noise (LayerPrediction::units) takes more than kMostUnitLoss from the predicted SQNR, and where
/// its register may overflow, or did when the network ran, or its products are not exact. `ignores`
/// names what the figures that remain do not count: the rounding of units.
void leave_out(LayerPrediction&, const policies::BoundRecipe&, const std::vector<TensorNoise>&);

/// Sentences for readers, of what no layer's figure shows: quantized layers with the same weight,
/// whose errors are equal and not independent; operators that choose elements by their values,
/// where noise may change the choice.
std::vector<policies::Note> model_notes(const policies::BoundRecipe&);

}  // namespace numemu::experiments
