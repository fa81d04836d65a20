// Finds the rule of an unknown unit: asks it dots whose results tell descriptions apart.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/dots/dots.hpp"
#include "emu/oracle/identify/questions.hpp"
#include "emu/unit/description.hpp"

namespace numemu::oracle {

/// The code of D that the unknown unit gives.
using Device = std::function<std::uint64_t(const Dot&)>;

struct IdentifyOptions {
  std::uint64_t seed = 0;
  std::size_t confirmations = 10'000;             ///< mixed vectors of the unit that was found
  bool any_nan = false;                           ///< every NaN equals every other
  bool catalogue = true;                          ///< begin with the units of the catalogue
  std::vector<unit::UnitDescription> units = {};  ///< beside them, with names of their own
  std::vector<AskedDot> pool = {};                ///< asked in place of question_pool()
  /// Says that the time is over: what is known by then is the finding. All threads ask it.
  std::function<bool()> stop = {};
  /// How far a phase has come, "questions" or "confirmations"; of the first the total is a guess.
  std::function<void(std::string_view phase, std::size_t done, std::size_t total)> on_progress = {};
};

/// A question and what the unit answered.
struct Answered {
  AskedDot question;
  std::uint64_t code = 0;
};

/// A question that was answered in two ways.
struct Changed {
  Dot dot;
  std::uint64_t first = 0, again = 0;
  std::size_t first_record = 0, again_record = 0;  ///< of records: their positions
};

/// A parameter that the answers leave open.
struct Undetermined {
  std::string rival;  ///< another value, in words
  /// Of records only: a question that would decide. Nothing: the two agree on everything tried.
  std::optional<Dot> separating;
};

struct FoundRule {
  bool fits = false;      ///< no answer contradicts the description
  bool too_late = false;  ///< the time was over before the last question
  /// Of all descriptions that fit the first of the catalogue, else the one found; where none fits,
  /// the one with the fewest contradictions.
  unit::UnitDescription description;
  std::vector<std::string> presets;  ///< units of the catalogue that agree with every answer
  std::vector<Undetermined> undetermined;
  /// The step in which each product enters the sum of the description, where a step map shows it.
  std::vector<int> steps;
  std::vector<Answered> answered;
  std::size_t tried = 0;  ///< questions on which what is undetermined agrees

  /// Answers that had no part in the choice of this description, and how many of them differ from
  /// it: mixed vectors of it that were asked, or records that were not searched.
  std::size_t confirmed = 0, differing = 0;

  /// Where none fits: answers that contradict the description and that no lost product explains,
  /// the first of them, and its result.
  std::size_t contradictions = 0, contradiction = 0;
  std::uint64_t expected = 0;
  /// Of these and of confirmations: those that were the same when asked again.
  std::size_t steady = 0;
  /// Positions whose products have no effect on any answer, where not all have one.
  std::vector<int> lost;
  /// Questions that got another answer when they were repeated, and the first of them.
  std::size_t changes = 0;
  std::optional<Changed> changed;
  /// False: so many changed that nothing more was asked; of records, any.
  bool reproducible = true;
  /// False: of fewer than kFewestConfirming records that were not searched.
  bool decided = true;

  /// A rule, although some answers differ: lost products and noise explain them. Of answers with
  /// noise, few have the same noise twice.
  bool found_but() const {
    const bool asked = confirmed != 0 || (!lost.empty() && !too_late);
    return !fits && reproducible && asked && 4 * steady <= changes;
  }
  /// The share of vectors like the confirmations that may differ unseen, at 95 %: the rule of
  /// three.
  double unseen() const { return confirmed == 0 ? 1 : 3 / static_cast<double>(confirmed); }
};

/// Asks until every description that is one parameter away from the found one is refuted or agrees
/// on all questions, then confirms. A question whose answer contradicts what was left is asked
/// again. Deterministic. Device errors pass through.
FoundRule identify(const Ports&, const Device&, const IdentifyOptions& = {});

/// Records that confirm a rule, at least: with fewer, more than a tenth of records like them may
/// differ from it (FoundRule::unseen).
inline constexpr std::size_t kFewestConfirming = 30;

/// The rule of records: nothing can be asked, the answers are all there are. At most half of them
/// are searched; the others confirm.
FoundRule identify(const Ports&, const std::vector<Answered>&, const IdentifyOptions& = {});

}  // namespace numemu::oracle
