// Recorded results against the rule of their unit and its rivals.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/identify/identify.hpp"
#include "emu/oracle/recording/hashes.hpp"
#include "emu/oracle/replay/record_folder.hpp"
#include "emu/oracle/rule.hpp"
#include "emu/oracle/verify.hpp"

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

/// How a rule fares on records.
struct Replay {
  std::string question, name;                ///< question "": the unit's own rule
  std::int64_t records = 0;                  ///< compared: a rival is left where it is refuted
  std::int64_t mismatches = 0;               ///< of them
  std::int64_t zero_signs = 0;               ///< of the mismatches: both are zeros
  std::int64_t nan_bits = 0;                 ///< of the mismatches: both are NaN
  std::int64_t first = 0;                    ///< the first record that differs
  std::uint64_t expected = 0, recorded = 0;  ///< there
  std::string_view equal = {};  ///< of a rival that was not compared: why no input tells it apart
};

/// Records with results made elsewhere, every bit of which counts.
class Recording {
 public:
  /// `number`: what results are, for zeros and NaN; null: codes without a meaning.
  Recording(Layout, Records, const Format* number);

  const Records& records() const { return records_; }
  /// All records, or as many as refute the rule.
  Replay replay(const Subject&, const Rule&, bool all = true) const;

 private:
  void compare(const Records& recorded, const Records& computed, Replay&) const;

  Layout layout_;
  Records records_;
  int result_;  ///< the last field
  Comparer bits_, numbers_;
};

/// Runs work(i) for i below n over threads; throws the first Error of any.
void for_each_part(std::size_t n, const std::function<void(std::size_t)>& work);

struct Judgement {
  const RecordedFile* file = nullptr;
  std::vector<Replay> replays;  ///< the unit's rule first; empty: the catalogue has no unit
  /// Where the rule is refuted and no rival stands: the rule with the fewest mismatches that
  /// changes of one question after another lead to; its name lists them.
  std::vector<Replay> closest;

  bool holds() const { return replays.empty() || replays.front().mismatches == 0; }
};

/// Compares every file over threads; the rule on every record by the reference, rivals by fast
/// paths where they have one. The folder must outlive the result. `described` replaces the units.
std::vector<Judgement> judge(const RecordFolder&, const unit::UnitDescription* described = nullptr);

/// A rival over all files of a chip.
struct Standing {
  std::string question, chip, rival;
  std::int64_t mismatches = 0;
  std::map<std::string, std::int64_t> instructions;  ///< mismatches by instruction
  std::map<std::string, std::string_view> equal;     ///< instructions of which no input tells it
  /// Instructions of which some input may tell it apart and no record does.
  std::vector<std::string> stands_for() const;
};
/// By question, then chip, in the order in which rivals first appear.
std::vector<Standing> standings(const std::vector<Judgement>&);

/// An instruction of a chip whose rule is refuted, and the rivals that no record contradicts.
struct Refuted {
  std::string chip, instruction, rule;
  std::int64_t mismatches = 0, records = 0;
  std::vector<std::string> standing;
};
std::vector<Refuted> refuted(const std::vector<Judgement>&);

}  // namespace numemu::oracle
