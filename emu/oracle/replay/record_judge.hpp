// Recorded results against the rule of their unit and its rivals.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/identify/identify.hpp"
#include "emu/oracle/judge.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "emu/oracle/rule.hpp"

namespace numemu::oracle {

/// One instruction of a chip with all its records.
struct RecordedUnit {
  std::string chip;
  const recording::Instruction* instruction = nullptr;
  Ports ports;
  std::vector<Answered> answers;  ///< named by their probes
};

/// The instructions in the order of the folder; the 13 low bits of tf32 are left out.
std::vector<RecordedUnit> recorded_units(const RecordFolder&);

struct HashReplay {
  std::string chip, instruction, unit;  ///< unit "": the catalogue has none
  std::int64_t hashes = 0, differ = 0;
  std::int64_t first_tile = 0, last_tile = 0;  ///< that the first different hash covers
};

/// FOLDER/hashes.tsv, whose inputs are drawn again; chips by FOLDER/index.tsv. Calls `done` after
/// each run whose kind and name hold `only`, in the order of the table. Fast paths, over threads.
/// Throws Error naming file and line.
void judge_hashes(const std::string& folder, const std::string& only,
                  const std::function<void(const HashReplay&)>& done);

/// Records with results made elsewhere, every bit of which counts, in the last field.
struct Recording {
  Layout layout;
  Records records;
  const Format* number;  ///< what results are, for zeros and NaN; null: codes without a meaning

  /// All records, or as many as refute the rule.
  Judged judged(const Subject&, const Rule&, bool all = true) const;
};

struct Judgement {
  const RecordedFile* file = nullptr;
  std::vector<Judged> rules;  ///< the unit's first; empty: the catalogue has no unit
  /// Where the rule is refuted and no rival stands: the rule with the fewest mismatches that
  /// changes of one question after another lead to; its name lists them.
  std::vector<Judged> closest;

  bool holds() const { return rules.empty() || rules.front().holds(); }
};

/// Compares every file over threads; the rule on every record by the reference, rivals by fast
/// paths where they have one. The folder must outlive the result. `described` replaces the units.
std::vector<Judgement> judge(const RecordFolder&, const unit::UnitDescription* described = nullptr);

/// A rival over all files of a chip.
struct Standing {
  std::string family, chip, rival;
  std::int64_t mismatches = 0;
  std::map<std::string, std::int64_t> instructions;  ///< mismatches by instruction
  std::map<std::string, std::string_view> equal;     ///< instructions of which no input tells it
  /// Instructions of which some input may tell it apart and no record does.
  std::vector<std::string> stands_for() const;
};
/// By family, then chip, in the order in which rivals first appear.
std::vector<Standing> standings(const std::vector<Judgement>&);

/// An instruction of a chip whose rule is refuted, and the rivals that no record contradicts.
struct Refuted {
  std::string chip, instruction, rule;
  std::int64_t mismatches = 0, records = 0;
  std::vector<std::string> standing;
};
std::vector<Refuted> refuted(const std::vector<Judgement>&);

}  // namespace numemu::oracle
