// Figures of a task besides top-1 and loss: sums over samples, so that any resample has its figure.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

class Dataset;

/// What the network made of one sample, and what was expected of it.
struct Outcome {
  std::span<const float> output;     ///< [positions, width]
  std::span<const float> reference;  ///< of the network in float32; empty unless a score needs it
  std::span<const std::int32_t> classes;
  std::span<const float> values;
  std::span<const double> loss;  ///< cross-entropy of each class
  std::int64_t width = 1;        ///< last axis of the output
};

/// Sums of each sample, [samples, columns].
struct ScoreTable {
  std::int64_t columns = 0;
  std::vector<double> sums;
  std::int64_t samples() const {
    return columns == 0 ? 0 : static_cast<std::int64_t>(sums.size()) / columns;
  }
};

/// The figure of samples of which sample i counts times[i] times; NaN where they have none.
using Figure = std::function<double(const std::vector<std::int64_t>& times)>;

/// How people read a figure, and which loss of it they call small.
struct ShownAs {
  const char* title;   ///< of a column: "Top-1, %"
  const char* words;   ///< in a sentence: "top-1"
  const char* prefix;  ///< between a number and the words: "%"
  const char* unit;    ///< of a change: "points"
  double factor;       ///< of numbers that are shown: 100 for shares from 0 to 1
  int digits;
  bool falls = false;     ///< less is better
  bool relative = false;  ///< a loss is a share of float32's figure
  /// Losses that count as small and as hopeless, before `factor`; 0: no loss is usually called so,
  /// and nothing is judged.
  double small = 0, hopeless = 0;
};

struct Score {
  std::string_view name, summary;
  /// Whether a data set has what it compares with.
  bool (*fits)(const Dataset&);
  std::int64_t (*columns)(const Dataset&);
  /// Writes the sums of a sample, which are 0 before.
  void (*add)(const Outcome&, double* sums);
  /// The figure of any resample of the table, which it goes on to read. What all resamples share
  /// is computed here, once: the order of the samples.
  Figure (*figure)(const ScoreTable&);
  ShownAs shown;
  bool reference = false;  ///< reads Outcome::reference
  bool share = false;      ///< column 0 over column 1, from 0 to 1 in every sample
};

/// A score of one output of a network.
struct OutputScore {
  const Score* score = nullptr;
  std::size_t output = 0;  ///< of Dataset::targets_of()
  std::string name = {};   ///< in rows: "top1", "OUTPUT/top1" of any but the first

  /// Of the first output.
  OutputScore(const Score* of) : score(of), name(of->name) {}
  OutputScore(const Score* of, std::size_t at, const std::string& output_name)
      : score(of), output(at) {
    name = (at == 0 ? "" : output_name + "/") + std::string(of->name);
  }
  const Score* operator->() const { return score; }
  bool operator==(const OutputScore& other) const {
    return score == other.score && output == other.output;
  }
};

/// Of a name, also with an output before it. Throws Error with the nearest known name.
const Score& find_score(std::string_view name);
std::span<const Score> scores();
std::vector<std::string> score_names();
/// What a row of this data set has unless told otherwise: none for one class per sample, as every
/// row has top-1 and loss of the first output. Those of other outputs are "OUTPUT/NAME".
std::vector<std::string> default_scores(const Dataset&);
/// The scores of those names; a name without an output is that of every output whose targets it
/// fits. Also top1 where a sample has several classes, whose errors depend on
/// each other, so that its interval is that of samples. Throws Error for one that does not fit the
/// data set.
std::vector<OutputScore> scores_for(const Dataset&, const std::vector<std::string>& names);

}  // namespace numemu::net
