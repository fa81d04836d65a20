// Results made elsewhere held against those that an operation or a unit must give: files of
// records, arrays of a kernel, folders that GPUs recorded.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/units.hpp"
#include "emu/oracle/explain.hpp"
#include "emu/oracle/foreign.hpp"
#include "emu/oracle/replay/conversion_judge.hpp"
#include "emu/oracle/replay/hash_judge.hpp"
#include "emu/oracle/replay/record_judge.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/verify.hpp"

namespace numemu::api {

/// Which results are equal, and when to stop.
struct Equality {
  oracle::Tolerance tolerance = {};
  std::int64_t most_mismatches = 0;  ///< 0: never stop
};

/// What a file of records is about, as far as its first line does not say it; an empty text is
/// nothing.
struct RecordsTold {
  std::string unit = {}, format_a = {}, format_b = {};  ///< of a unit
  std::string op = {}, from = {}, to = {}, rounding = {}, overflow = {};
  std::int64_t k = 0;
  std::string fields = {};  ///< of foreign lines: "a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32"
  oracle::ElementOrder order = oracle::ElementOrder::lsb;  ///< of their words
};

/// The verifier with everything it has read, the rules that explain what differs, and what a report
/// says about the input.
struct Verified {
  oracle::Verifier verifier;
  std::string name;                  ///< of the file
  UnitPtr unit;                      ///< of the verifier's subject; null: an operation
  std::shared_ptr<Product> product;  ///< with the places of D; null: records of a file
  bool complete = true;              ///< false: the limit of mismatches ended the reading
  const char* place = "line";        ///< what Records::line counts: lines, or records from 0
  oracle::Explanation explanation = {};

  bool holds() const { return verifier.tally().mismatches() == 0; }
};

/// Reads and checks a file in any form that RecordFile reads. Throws Error naming the file and its
/// line, or the option.
Verified verify_records(const std::string& in, const RecordsTold&, const Equality&,
                        const OnProgress& = {});
/// Every output of a kernel's D. Rules of arrays read or written in another order are tried, too.
Verified verify_product(std::unique_ptr<Product>, Array d, const std::string& name,
                        const Equality&);
Verified verify_product(const std::string& unit, const ProductFiles&, const std::string& d,
                        const Equality&);

/// Recorded answers of GPUs held against the units of their chips.
struct VerifiedFolder {
  oracle::RecordFolder folder;
  std::vector<oracle::Judgement> judgements;
  std::vector<oracle::ConversionVerdict> conversions;

  std::int64_t records() const;
  std::int64_t without_rule() const;
  std::int64_t mismatches() const;
  std::int64_t wrong_conversions() const;
  bool holds() const { return mismatches() == 0 && wrong_conversions() == 0; }
};

/// `only`: part of kind, instruction or file; `unit` in place of those of the chips. Throws Error
/// naming file and line.
std::unique_ptr<VerifiedFolder> verify_folder(const std::string& folder, const std::string& only,
                                              const std::string& unit);
/// Every dot of the large runs computed again; `done` after each run.
std::vector<oracle::HashVerdict> verify_hashes(
    const std::string& folder, const std::string& only,
    const std::function<void(const oracle::HashVerdict&)>& done);

/// Whether the path is a folder.
bool is_folder(const std::string& path);

}  // namespace numemu::api
