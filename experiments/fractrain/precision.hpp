// Bits of the operands of training, what they cost in exact arithmetic, and the ways of choosing
// them over a training that fractrain compares.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::fractrain {

/// Bits of the operands of a layer's products.
struct Precision {
  int weight = 0, activation = 0, gradient = 0;

  /// "3/6": weights and activations of 3 bits, gradients of 6, each from 2 to 8. Throws Error.
  static Precision parse(const std::string& text);
  std::string text() const;
  bool operator==(const Precision&) const = default;
};

/// Multiply-adds of the three products of a layer or network.
struct MultiplyAdds {
  double fprop = 0, dgrad = 0, wgrad = 0;
};

/// In multiply-adds of 32 x 32 bits: each counts as the product of its operands' bits over 32 x 32.
double cost(const Precision&, const MultiplyAdds&);
/// Of one multiply-add where the three products have equal shares, as published.
double published_cost(const Precision&);
/// The mean published cost of epochs at those precisions over that of `whole`.
double published_share(const std::vector<Precision>& epochs, const Precision& whole);

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

/// Accuracy against the cost of static and of progressive precision.
void add_progressive(const ExperimentRun&, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::fractrain
