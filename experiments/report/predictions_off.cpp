#include "experiments/report/predictions_off.hpp"

#include <algorithm>

namespace numemu::experiments {

bool any_predictions(const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [](const Record& r) {
    const Json* made = r.row ? json_at(*r.row, {"point", "predictions"}) : nullptr;
    return !r.is_float32() && (!made || *made != Json(false));
  });
}

std::vector<Json> without_predictions(std::vector<Json> rows) {
  for (Json& row : rows) {
    row["point"]["predictions"] = false;
    row["predicted"] = {{"sqnr_db", nullptr}, {"verdict", nullptr}, {"tensors", Json::array()}};
    for (Json& layer : row["layers"]) {
      layer["predicted_db"] = layer["verdict"] = nullptr;
      layer.erase("left_out");
    }
  }
  return rows;
}

}  // namespace numemu::experiments
