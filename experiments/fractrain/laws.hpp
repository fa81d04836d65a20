// What training in few bits costs, in multiply-adds of 32 x 32 bits: exact arithmetic.
#pragma once
#include <string>
#include <vector>

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

/// Each multiply-add counts as the product of its operands' bits over 32 x 32.
double cost(const Precision&, const MultiplyAdds&);
/// Of one multiply-add where the three products have equal shares, as published.
double published_cost(const Precision&);
/// The mean published cost of epochs at those precisions over that of `whole`.
double published_share(const std::vector<Precision>& epochs, const Precision& whole);

}  // namespace numemu::experiments::fractrain
