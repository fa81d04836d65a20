// Independent dot products as codes, and their results under any description.
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "emu/unit/description.hpp"

namespace numemu::oracle {

/// What a unit takes and gives. Units with the same ports can answer the same questions.
struct Ports {
  const Format *a = nullptr, *b = nullptr;
  const Format *c = nullptr, *d = nullptr;  ///< nullptr: two's complement of `bits`
  int bits = 32;
  int k = 0;                      ///< elements of B in one dot; of A, too, where it is dense
  const Format* scale = nullptr;  ///< of block scales; nullptr: none
  int block = 0;                  ///< elements per scale
  unit::Sparsity sparsity;

  /// Elements of A, and scales per operand.
  int kept() const { return sparsity.dense() ? k : k / sparsity.group * sparsity.kept; }
  int scales() const { return scale == nullptr ? 0 : (kept() + block - 1) / block; }
  bool operator==(const Ports&) const = default;
};

/// The ports of a described unit for dots of depth k. Operands of a unit that takes any format are
/// float16, of a unit that rounds them float32.
Ports ports_of(const unit::UnitDescription&, int k);
/// Whether a unit has these ports; one that takes any operand format does.
bool fits(const unit::UnitDescription&, const Ports&);

/// One dot, as codes: `kept` positions inside each group are those of unit::Gemm.
struct Dot {
  std::vector<std::uint64_t> a, b;
  std::uint64_t c = 0;
  std::vector<std::uint8_t> scale_a, scale_b, kept;
  auto operator<=>(const Dot&) const = default;
};

/// The code of D of every dot, by the reference. A stochastic register draws for each dot as for
/// the only output of a product with seed 0. The description must fit the ports.
std::vector<std::uint64_t> evaluate(const unit::UnitDescription&, const Ports&,
                                    std::span<const Dot>);
/// Whether evaluate() gives these codes. Stops at the first that differs.
bool gives(const unit::UnitDescription&, const Ports&, std::span<const Dot>,
           std::span<const std::uint64_t> codes);

}  // namespace numemu::oracle
