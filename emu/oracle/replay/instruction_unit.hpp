// Recorded instructions as subjects and records: the unit of the catalogue that computes one, its
// dots field by field, its results.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/evaluate.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/records.hpp"
#include "emu/unit/unit.hpp"

namespace numemu::oracle {

/// The description of the catalogue's unit with the operand formats, C and K of the instruction:
/// nvidia.h100.mma.f16.f32 for mma m16n8k16.f32.f16.f16.f32 of the H100. Nothing where the
/// catalogue has none.
std::optional<unit::UnitDescription> unit_of(const std::string& chip,
                                             const recording::Instruction&);

/// The fields a b [sa sb] [e] c d, in the order of record_layout(ports_of(i)). They have no format:
/// their codes are what stands in the containers, all 32 bits of TF32.
Layout container_layout(const recording::Instruction&);
/// A dot as record i of container_layout().
void put_record(const recording::Instruction&, const recording::RecordView&, Records& to,
                std::int64_t i);
/// Every dot of the tiles, tile by tile, row by row.
Records records_of(const recording::Batch&);
/// D of such records as in Batch::d.
std::vector<std::uint8_t> in_containers(const recording::Instruction&, const Records&);

/// What a unit computes of the records of an instruction. `unit` must outlive it.
Subject subject_of(const unit::Unit&, const recording::Instruction&);

/// D of every tile as the unit computes it, in the containers and the order of batch.d, over
/// threads unless already inside a parallel region. Throws Error as Unit::multiply() does.
std::vector<std::uint8_t> results_of(const unit::Unit&, const recording::Batch&, Path);

}  // namespace numemu::oracle
