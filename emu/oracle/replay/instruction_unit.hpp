// The unit of the catalogue that computes a recorded instruction of a chip, and its results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::oracle {

/// The description of the catalogue's unit with the operand formats, C and K of the instruction:
/// nvidia.h100.mma.f16.f32 for mma m16n8k16.f32.f16.f16.f32 of the H100. Nothing where the
/// catalogue has none.
std::optional<unit::UnitDescription> unit_of(const std::string& chip,
                                             const recording::Instruction&);

/// N kept of M along k.
unit::Sparsity sparsity_of(const recording::Instruction&);
/// For each kept element its index in its group, from words of four bits (PTX ISA, "Sparse matrix
/// storage").
std::vector<std::uint8_t> kept_indices(const recording::Instruction&,
                                       const std::vector<std::uint8_t>& metadata);

enum class Path : std::uint8_t { reference, fast };

/// D of every tile as the unit computes it, in the containers and the order of batch.d, over
/// threads unless already inside a parallel region. Throws Error as Unit::multiply() does.
std::vector<std::uint8_t> results_of(const unit::Unit&, const recording::Batch&, Path);

}  // namespace numemu::oracle
