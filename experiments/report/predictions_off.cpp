#include "experiments/report/predictions_off.hpp"

#include <algorithm>

namespace numemu::experiments {

bool any_predictions(const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [](const Record& r) {
    return !r.is_float32() && (r.row == nullptr || !r.row->turned_off());
  });
}

std::vector<Row> without_predictions(std::vector<Row> rows) {
  for (Row& row : rows) {
    row.point["predictions"] = false;
    row.predicted = {};
    row.predicted.sqnr_db = Member<double>::null();
    row.predicted.verdict = Member<Verdict>::null();
    for (RowLayer& layer : row.layers) {
      layer.predicted_db = Member<double>::null();
      layer.verdict = Member<Verdict>::null();
      layer.left_out.clear();
    }
  }
  return rows;
}

}  // namespace numemu::experiments
