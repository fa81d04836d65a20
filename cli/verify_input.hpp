// What `numemu verify` reads: vector files, foreign lines, the arrays of a kernel.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/gemm_arrays.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/verify.hpp"

namespace numemu::cli {

struct VerifyOptions {
  std::string folder, only;
  std::string in, unit, op, from, to, rounding, overflow, fields, element_order;
  std::string nan = "any", zero_sign = "strict", junit, d;
  GemmFiles arrays;
  bool dots = false;
  std::int64_t k = 0, max_errors = 0, ulp = 0;
  std::uint64_t seed = 0;
  bool hashes = false, json = false, quiet = false;
};

/// The verifier with everything it has read, and what a report says about the input.
struct Verified {
  oracle::Verifier verifier;
  std::string name;                      ///< of the file
  std::shared_ptr<GemmArrays> arrays;    ///< with the places of D; null: records of a file
  bool complete = true;                  ///< false: the limit of mismatches ended the reading
  const char* place = "line";            ///< what Records::line counts: lines, or records from 0
  std::vector<oracle::Rule> rules = {};  ///< of arrays read or written in another order
};

/// Reads and checks. Throws Error naming the file and its line, or the option.
Verified verify_file(const VerifyOptions&);
Verified verify_arrays(const VerifyOptions&);

/// --nan, --zero-sign, --ulp, --max-errors.
oracle::Compared compared_by(const VerifyOptions&);

}  // namespace numemu::cli
