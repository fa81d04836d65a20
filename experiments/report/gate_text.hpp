// The verdicts of a gate (experiments/engine/gate.hpp) in tables and in a sentence.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/record.hpp"

namespace numemu::experiments {

/// "pass", "fail", "undecided", "" for rows that were not judged.
std::string gate_verdict(const Record&);
/// The verdict, with the images that a decision needs where it is undecided.
std::string gate_words(const Record&);
/// "Gate top1 >= 0.99 float32 at 99 %, paired: 3 of 5 pass; 1 fail (...); 1 undecided (...).", one
/// sentence for each target; nothing without a gate. `unfinished` says which points are missing (""
/// for none): then the gate as a whole cannot pass.
std::vector<std::string> gate_sentences(const std::vector<Record>&,
                                        const std::string& unfinished = "");

}  // namespace numemu::experiments
