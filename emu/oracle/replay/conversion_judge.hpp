// Recorded conversions against their rules: mismatches of records, and hashes of whole runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/conversion.hpp"
#include "emu/oracle/replay/record_judge.hpp"

namespace numemu::oracle {

/// The code that NaN becomes. PTX ISA: "NaN in the destination format"; FP6 and FP4 have none and
/// take the largest number.
enum class NanCode : std::uint8_t {
  ones,         ///< positive, all ones: 0x7f, 0x7fff, 0x7fffffff (cuda_fp8.hpp of CUDA 13.0)
  signed_ones,  ///< the same, with the sign of the input
  quiet,        ///< positive, top mantissa bit only: e5m2 0x7e, float16 0x7e00
  payload,      ///< sign and upper mantissa bits stay, made quiet
  cut,          ///< sign and upper mantissa bits stay as they are; none left: the code of infinity
};
/// What a negative number becomes in ue8m0, which has no sign.
enum class NegativeScale : std::uint8_t { magnitude, zero, nan };

struct ConversionRule {
  std::string name;    ///< "NaN keeps its sign, all ones"
  std::string family;  ///< what it answers otherwise than the first rule; "": the first
  NanCode nan = NanCode::ones;
  bool infinity_saturates = true;  ///< .satfinite takes infinity to the largest number
  bool relu_keeps_minus_zero = false;
  NegativeScale negative = NegativeScale::magnitude;
  int random_bits = 0;                   ///< of rs, the top n discarded bits meet n random ones
  bool stochastic_stays_finite = false;  ///< rs without .satfinite ends at the largest number
  bool tf32_low_zero = true;             ///< the 13 bits below a tf32 are zero
};

/// The output code in its container.
std::uint32_t converted(const recording::Conversion&, std::uint32_t in, const ConversionRule&);

/// The rule of the documents, then its rivals. The first rests on the PTX ISA, on cuda_fp8.hpp for
/// NaN codes, and on the SASS for what the compiler makes of shifts and additions (tf32 with rna,
/// bf16 to float32).
std::vector<ConversionRule> conversion_rules(const recording::Conversion&);

/// A rule of a conversion on its records and its whole run.
struct ConversionReplay {
  const recording::Conversion* conversion = nullptr;
  std::string unit;
  Judged records;
  /// No record contradicts the rule, and its answers to all inputs of the run have the table's
  /// hash.
  bool whole_run = false;
  std::int64_t lanes = 0;  ///< inputs for which the lanes of the instruction disagree

  /// Whether the rule is that of the documents.
  bool is_first() const { return records.family.empty(); }
  /// Of a first rule: whether it is what the instruction does.
  bool holds() const { return whole_run && lanes == 0; }
};

/// FOLDER/conversions.tsv (file unit instr from to record_bytes count inputs seed hash lanes) and
/// its files, over threads; a conversion's first rule comes first. Only those whose name holds
/// `only`. Empty where there is no such table. Throws Error naming file and line.
std::vector<ConversionReplay> judge_conversions(const std::string& folder,
                                                const std::string& only = "");

/// FNV-1a over the answers to all inputs, with every lane giving the same code.
std::uint64_t run_hash(const recording::Conversion&, const std::vector<std::uint32_t>& in,
                       const ConversionRule&);

}  // namespace numemu::oracle
