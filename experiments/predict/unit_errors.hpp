// What the arithmetic of a unit adds to the noise of operands: the unit itself, on some outputs of
// products whose operands are codes of random phase.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "policies/numerics/overflow_sample.hpp"
#include "policies/recipe/bound_recipe.hpp"

namespace numemu::experiments {

/// Whether sums of a unit differ from exact ones by more than float32's do.
bool unit_adds_noise(const std::string& unit);

/// Of the products of one layer.
struct UnitError {
  std::string unit;
  double noise = 0;           ///< mean square, in the units of the layer's output
  bool overflows = false;     ///< a sum comes within a factor of two of a register's largest value
  bool approximates = false;  ///< a table whose products are not exact
  bool overflowed = false;    ///< some result of the measured pass
  double overflow = 0;        ///< predicted share of sums that leave a register
  double at_end = 0;          ///< and of results at an end of one that saturates or stops
  std::int64_t looked = 0;    ///< sums that both are shares of; 0: not predicted
  std::string words = {};     ///< what sums do that leave a register (overflow_words())
  /// Of the measured pass that the row's other counts are of.
  policies::SaturationCounts counts = {};
  std::int64_t results = 0, not_finite = 0;  ///< NaN and infinite ones of finite operands
  bool of_noise = false;  ///< counts of the pass that measures noise: the other has no overflow
};

/// An exact result and what the unit's differs from it by.
struct ResultError {
  double result = 0, error = 0;
};

/// Samples some outputs of every forward product and computes each by the layer's unit and exactly.
/// Sums lie in the unit's registers where those of the network do. Integer cores are exact until a
/// register overflows, which is all that is looked for there.
class UnitErrors {
 public:
  /// Layers whose unit has sums that are float32's or better are passed over.
  explicit UnitErrors(const policies::BoundRecipe&);
  ~UnitErrors();

  struct Scales {
    std::vector<float> of_elements = {};  ///< of the source's codes; empty: 1
    double zero_point = 0;                ///< what codes have beside value / scale
  };
  bool reads(std::string_view layer) const;

  /// Sums over the outputs of one or several products of a layer.
  struct Sample {
    std::int64_t outputs = 0;
    /// Sums that were followed; those that left a register, and that ended at its end.
    std::int64_t looked = 0, beyond = 0, at_end = 0;
    double squares = 0;  ///< of errors
    bool overflows = false;
    void add(const Sample&);
    void count(bool left, bool ended) {
      ++looked;
      beyond += left ? 1 : 0;
      at_end += ended ? 1 : 0;
    }
  };
  /// The sides' sources hold codes, which stand for codes times scales. Every draw looks at other
  /// outputs. Thread-safe.
  struct Result {
    Sample sample;
    std::vector<ResultError> errors;  ///< by ascending result; empty: sums are exact
  };
  Result sample(const net::Product&, const Scales& left, const Scales& right,
                std::int64_t draw) const;
  /// By layer, of all samples that were taken.
  std::map<std::string, UnitError> errors(const std::map<std::string, Sample>&) const;

 private:
  struct Layer;
  std::map<std::string, Layer, std::less<>> layers_;
  std::uint64_t seed_;
};

}  // namespace numemu::experiments
