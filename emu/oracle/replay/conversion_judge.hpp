// Recorded conversions against their rules: mismatches of records, and hashes of whole runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/replay/conversion_rules.hpp"

namespace numemu::oracle {

struct ConversionVerdict {
  const recording::Conversion* conversion = nullptr;
  ConversionRule rule;
  std::string unit;
  std::int64_t records = 0, mismatches = 0;
  std::uint32_t in = 0, recorded = 0, expected = 0;  ///< of the first mismatch
  /// No record contradicts the rule, and its answers to all inputs of the run have the table's
  /// hash.
  bool whole_run = false;
  std::int64_t lanes = 0;  ///< inputs for which the lanes of the instruction disagree

  /// Of a first rule: whether it is what the instruction does.
  bool holds() const { return whole_run && lanes == 0; }
};

/// FOLDER/conversions.tsv (file unit instr from to record_bytes count inputs seed hash lanes) and
/// its files, over threads; a conversion's first rule comes first. Only those whose name holds
/// `only`. Empty where there is no such table. Throws Error naming file and line.
std::vector<ConversionVerdict> judge_conversions(const std::string& folder,
                                                 const std::string& only = "");

/// FNV-1a over the answers to all inputs, with every lane giving the same code.
std::uint64_t run_hash(const recording::Conversion&, const std::vector<std::uint32_t>& in,
                       const ConversionRule&);

}  // namespace numemu::oracle
