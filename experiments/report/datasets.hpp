// The named tables that the charts draw; the JSON file of a chart names them.
#pragma once
#include <vector>

#include "experiments/report/record.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// An object of arrays of flat records. Accuracies are in percent, losses in points, SQNR in dB.
/// What rows are judged by (`figure`) replaces accuracies where it is not top-1.
/// `points` one per quantized row; `sensitivity` one per row that quantizes one layer alone;
/// `baseline` float32 rows; `predictions` every predicted beside its measured SQNR; `diagonal` the
/// ends of y = x; `layers` one bar per row, layer and kind; `steps` the positive values of the
/// swept formats; `tensors` histograms as given; `grids` the finite values of the swept formats of
/// at most 10 bits.
Json chart_datasets(const std::vector<Record>&, const Json* tensors);

/// The units of the quantized rows, each once, in order of appearance.
std::vector<std::string> swept_units(const std::vector<Record>&);

}  // namespace numemu::experiments
