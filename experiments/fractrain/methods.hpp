// The ways of training that are compared, as recipes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/engine/experiment.hpp"
#include "experiments/fractrain/laws.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::fractrain {

struct Method {
  /// tested: the second precision is that of the test alone.
  enum class Stages : std::uint8_t { one, tested, schedule, indicator } kind = Stages::one;
  std::string name;
  std::vector<Precision> precisions;  ///< by stage; float32: one of 32 bits
  std::int64_t epochs = 0;

  bool progressive() const { return kind == Stages::schedule || kind == Stages::indicator; }
};

/// When stages begin by the published indicator: eps of the first turning point, multiplied by
/// alpha after the first and after the second.
struct Indicator {
  double eps = 0, alpha = 0;
};

/// Every operand by its smallest and largest element (group(uintK,tensor,float32,min)), gradients
/// with stochastic rounding, as published; the weights' ranges are those of tensors. {} for 32
/// bits.
Json roles_of(const Precision&);
Json recipe_of(const Method&, const Indicator&);

/// The precision that all others are compared with: the last stage from the start, which is the
/// first method. Then float32, those of the setting `static`, the first stage tested at the last,
/// the stages by schedule and by the indicator, and the last stage for as many epochs as the
/// schedule's cost pays for.
std::vector<Method> methods_of(const Settings&);

}  // namespace numemu::experiments::fractrain
