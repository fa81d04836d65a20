// The named tables that the charts draw; the JSON file of a chart names them.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/report_row.hpp"
#include "formats/format.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// An object of arrays of flat records. Accuracies are in percent, losses in points, SQNR in dB.
/// What rows are judged by (`figure`) replaces accuracies where it is not top-1.
/// `points` one per quantized row; `sensitivity` one per row that quantizes one layer alone;
/// `baseline` float32 rows; `predictions` every predicted beside its measured SQNR; `diagonal` the
/// ends of y = x; `layers` one bar per row, layer and kind; `steps` the positive values of the
/// swept formats; `tensors` histograms as given; `grids` the finite values of the swept formats of
/// at most 10 bits.
Json chart_datasets(const std::vector<ReportRow>&, const Json* tensors);

/// The units of the quantized rows, each once, in order of appearance.
std::vector<std::string> swept_units(const std::vector<ReportRow>&);

/// A scalar format of the sweep that is small enough to draw value by value.
struct SweptFormat {
  std::string name, family;
  int bits = 0;
  std::vector<double> values;  ///< every finite value, ascending, unscaled
  double largest = 0;          ///< what the absmax scale maps the tensor's absolute maximum to
};

/// The formats of weights and activations of at most 10 bits, of block formats the element's, each
/// once: float before int, then by
/// bits, then by name.
std::vector<SweptFormat> swept_formats(const std::vector<ReportRow>&);
/// Of a format.
SweptFormat swept_format(const Format&);

/// {format, family, bits, values, largest} per format.
Json grid_records(const std::vector<SweptFormat>&);

/// {format, family, bits, value, step} per positive value: value relative to the largest, step to
/// the next value (of the largest: from the one before) in percent of the value.
Json step_records(const std::vector<SweptFormat>&);

/// The elements of tensors.json that can be drawn: named, low < high, absmax > 0, non-empty numeric
/// counts.
Json valid_histograms(const Json& tensors);

}  // namespace numemu::experiments
