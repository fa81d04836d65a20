// Finds the rule of an unknown unit: asks it dots whose results tell descriptions apart.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/dots.hpp"
#include "emu/oracle/questions.hpp"
#include "emu/unit/description.hpp"

namespace numemu::oracle {

/// The code of D that the unknown unit gives.
using Device = std::function<std::uint64_t(const Dot&)>;

struct IdentifyOptions {
  std::uint64_t seed = 0;
  std::size_t confirmations = 300;  ///< random questions once a description fits
  bool any_nan = false;             ///< every NaN equals every other
  bool catalogue = true;            ///< begin with the units of the catalogue
};

/// A question and what the unit answered.
struct Answered {
  Question question;
  std::uint64_t code = 0;
};

/// A parameter that the answers leave open.
struct Undetermined {
  std::string rival;  ///< another value, in words
  /// Of records only: a question that would decide. Nothing: the two agree on everything tried.
  std::optional<Dot> separating;
};

struct Finding {
  bool fits = false;
  /// Of all descriptions that fit the first of the catalogue, else the one found; where none fits,
  /// the one with the fewest contradictions.
  unit::UnitDescription description;
  std::vector<std::string> presets;  ///< units of the catalogue that agree with every answer
  std::vector<Undetermined> undetermined;
  /// The step in which each product enters the sum of the description, where a step map shows it.
  std::vector<int> steps;
  std::vector<Answered> answered;
  std::size_t tried = 0;  ///< questions on which what is undetermined agrees

  /// Where none fits: answers that contradict the description, the first of them, and its result.
  std::size_t contradictions = 0, contradiction = 0;
  std::uint64_t expected = 0;
  /// Position in `answered` of a question that got another answer when it was repeated.
  std::optional<std::size_t> inconsistent;
};

/// Asks until every description that is one parameter away from the found one is refuted or agrees
/// on all questions, then confirms. Deterministic. Device errors pass through.
Finding identify(const Ports&, const Device&, const IdentifyOptions& = {});

/// The same from records: nothing can be asked, the answers are all there are.
Finding identify(const Ports&, const std::vector<Answered>&, const IdentifyOptions& = {});

}  // namespace numemu::oracle
