// Recorded conversions against the rules: mismatches per rule, and whether a rule gives the whole
// run.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "tests/oracle/cuda/conversions/convert.hpp"

namespace numemu::oracle::recording {

struct ConversionTally {
  const Conversion* conversion;
  ConversionRule rule;
  int records = 0, mismatches = 0;
  std::uint32_t in = 0, recorded = 0, expected = 0;  ///< of the first mismatch
  /// No record contradicts the rule, and its answers to all inputs of the run hash to what the
  /// table says.
  bool whole_run = false;
  std::uint64_t lanes = 0;  ///< inputs for which the lanes of the instruction disagree
};

/// Reads FOLDER/conversions.tsv and its files (ask_conversion.hpp). Empty where there is no such
/// table. Throws std::runtime_error that says what is wrong with it.
std::vector<ConversionTally> replay_conversions(const std::string& folder);

/// A line per rule; returns how many of the first rules (the documents') do not give the whole run,
/// or whose lanes disagree.
int print_tallies(const std::vector<ConversionTally>&, std::FILE*);

/// FNV-1a over the answers to all inputs, with every lane giving the same code.
std::uint64_t run_hash(const Conversion&, const std::vector<std::uint32_t>& in,
                       const ConversionRule&);

}  // namespace numemu::oracle::recording
