// Float32 numerics that disturb the operands of products as a recipe's rounding would, by noise of
// random phase.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/net/tensor.hpp"
#include "experiments/predict/injected_roles.hpp"
#include "experiments/predict/unit_errors.hpp"

namespace numemu::experiments {

/// Activations in blocks along the reduction of a convolution are drawn as the matrix that it
/// reads, of at most so many elements.
inline constexpr std::int64_t kMostColumns = std::int64_t{1} << 25;

/// One pass over some samples: every product reads disturbed operands and multiplies in float32.
/// An activation has one phase per sample and channel (its last axis), the network's input one per
/// sample, a weight one per element; samples may share theirs. The drawn errors of a tensor then
/// get the two moments of its rounding, sum x e and sum e^2, in every channel (of a weight: output)
/// of at least 128 elements, else of the whole tensor: rounding shrinks tensors by a little, which
/// adds up coherently. A weight has sum x e in every output, and sum r e with the root mean squares
/// r of its inputs: inputs that vary together multiply the errors of an output as one number.
/// Scales are those of the role's rule: static ones as calibrated, the others from the operand as
/// it comes, upstream noise included, each sample for itself. To the results comes what the layer's
/// unit adds (unit_errors.hpp): of some outputs, whose operands are the nearest codes; every output
/// gets the error of one whose result is near its own, results that are one number (Atoms) one
/// error.
class InjectedNoise : public net::Numerics {
 public:
  /// By layer, by ascending result.
  using KnownErrors = std::map<std::string, std::vector<ResultError>, std::less<>>;
  /// `probe` is the number of the draw; without `units` sums are float32's. Errors that are `known`
  /// are lent to the results, no unit multiplies, and samples share phases, as they share the grid
  /// of the network that is measured.
  InjectedNoise(const InjectedRoles&, int probe, const UnitErrors* units = nullptr,
                const KnownErrors* known = nullptr);
  void product(const net::Step&, const net::Product&) override;
  /// Of the products so far, by layer.
  const std::map<std::string, UnitErrors::Sample>& units() const { return samples_; }
  /// The errors of those outputs.
  const KnownErrors& unit_errors() const { return errors_; }
  /// One phase per element; the moments are those of the whole table.
  net::SharedTensor table(const net::Step&, std::string_view layer,
                          const net::Tensor& parameter) override;
  /// One phase per sample and channel, as of an activation; -infinity and NaN stay.
  void vector_result(const net::Step&, std::string_view layer, std::string_view op,
                     net::Tensor&) override;

 private:
  /// An operand with its noise; where units are looked at, the codes that are nearest, too.
  struct Disturbed {
    net::Tensor values, codes;
    UnitErrors::Scales scales;  ///< of codes; empty in blocks, whose codes are values
  };
  Disturbed disturbed(const InjectedRoles::Operand&, const net::Product&, net::Side) const;
  bool samples_units(std::string_view layer) const;
  void add_unit_errors(const net::Product&, const std::vector<ResultError>&);
  /// Of a tensor that is stored: its scales are those of `shape` and of each of `samples` shares.
  void disturb_stored(const InjectedRoles::Operand&, const net::Shape& shape, std::int64_t samples,
                      float* x) const;
  /// x + noise, of [lines, channels] with the given scales; `shifts`, unless empty, are subtracted
  /// before.
  net::Tensor drawn(const InjectedRoles::Operand&, const net::Tensor& x,
                    const std::vector<float>& scales, const std::vector<float>& shifts,
                    bool weight) const;
  RandomSource source(const InjectedRoles::Operand&, const char* use) const;

  const InjectedRoles& roles_;
  int probe_;
  const UnitErrors* units_;
  const KnownErrors* known_;
  std::map<std::string, UnitErrors::Sample> samples_;
  KnownErrors errors_;
  std::map<std::string, std::int64_t> calls_;  ///< so far, by layer
};

}  // namespace numemu::experiments
