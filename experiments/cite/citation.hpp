// What identifies a run: the program, the command and digests of what it read, as text and BibTeX.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/engine/row.hpp"

namespace numemu::experiments {

/// The program that reports, which need not be the one that ran: rows carry their numerics version.
struct CitedProgram {
  std::string version;  ///< of the release
};

struct Citation {
  std::string title;     ///< "numemu sweep of ResNet-20 on cifar10", "numemu experiment kure"
  std::string key;       ///< of BibTeX: letters, digits and '-', ends with part of a digest
  std::string version;   ///< of the release
  std::string numerics;  ///< versions of the rows or the conclusion
  std::string command;   ///< runs it again
  /// "sweep", "recipes", "data CIFAR", "network NET" or "conclusion", and a SHA-256 (or, of
  /// networks and data, what rows record of it). In that order, each name once a digest.
  std::vector<std::pair<std::string, std::string>> digests;
};

/// Of rows with the canonical `sweep` (may be null), or of an experiment.
Citation citation_of(const std::vector<Row>& rows, const Json* sweep, const Json* experiment,
                     const CitedProgram&);

/// Lines "version: ..." of what is known.
std::string citation_text(const Citation&);
/// An entry @misc whose values are escaped for LaTeX.
std::string bibtex(const Citation&);

/// Text for LaTeX: its special characters escaped, control characters spaces, the signs of reports
/// (such as the plus-minus sign) as commands.
std::string latex_text(std::string_view text);

}  // namespace numemu::experiments
