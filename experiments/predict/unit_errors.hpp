// What the arithmetic of a unit adds to the noise of operands: the unit itself, on operands that
// are not rounded.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::experiments {

/// Of the products of one layer.
struct UnitError {
  std::string unit;
  double noise = 0;           ///< mean square, in the units of the layer's output
  bool overflows = false;     ///< a sum comes within a factor of two of a register's largest value
  bool approximates = false;  ///< a table whose products are not exact
  double overflowed = 0;      ///< share of a measured pass's results (SaturationCounts)
};

/// Samples some outputs of every forward product and computes each by the layer's unit and exactly.
/// The operands are float32 numbers under the scales of their roles, so that sums lie in the
/// unit's registers where those of codes do; they have more bits than codes, whose first sums may
/// be exact: the error is an upper estimate, by up to 2 dB for short sums of narrow formats.
/// Integer cores are exact until a register overflows, which is all that is looked for there.
class UnitErrors {
 public:
  /// Layers whose unit has sums that are float32's or better are passed over.
  explicit UnitErrors(const policies::BoundRecipe&);
  ~UnitErrors();

  struct Scales {
    std::vector<float> of_elements = {};  ///< of the source's elements; empty: 1
    double zero_point = 0;                ///< what codes have beside value / scale
  };
  bool reads(std::string_view layer) const;
  /// The sides' sources hold the numbers. One call at a time.
  void add(const net::Product&, const Scales& left, const Scales& right);
  /// By layer that was added.
  std::map<std::string, UnitError> errors() const;

 private:
  struct Layer;
  std::map<std::string, Layer, std::less<>> layers_;
  std::uint64_t seed_;
};

}  // namespace numemu::experiments
