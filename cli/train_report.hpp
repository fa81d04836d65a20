// The epochs of numemu train as rows of metrics.jsonl and as lines of text.
#pragma once
#include <string>
#include <vector>

#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/metrics.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/staged_numerics.hpp"

namespace numemu::cli {

/// metrics.jsonl: one row per epoch; a resumed run leaves the file of an uninterrupted one.
class MetricsFile {
 public:
  /// `text`: rows have perplexity and bits per character of the validation. `staged`: rows have the
  /// stage of the recipe; null without stages.
  MetricsFile(std::string path, bool text, const policies::StagedNumerics* staged)
      : path_(std::move(path)), text_(text), staged_(staged) {}
  /// Replaces whatever is there by the rows of those epochs. Throws Error naming the file.
  void begin(const std::vector<net::EpochMetrics>&);
  void append(const net::EpochMetrics&);

 private:
  std::string row(const net::EpochMetrics&) const;
  std::string path_;
  bool text_;
  const policies::StagedNumerics* staged_;
};

/// "epoch   3  loss 0.0512  train 98.41 %  validation loss 0.0601  98.12 %"
std::string epoch_line(const net::EpochMetrics&, bool text);
/// The metrics of --json for the test split.
Json test_json(const net::Evaluation&, bool text);
/// "test 98.01 % of 10000 images, 95 % interval [..], loss .." `noun` names the targets.
std::string test_line(const net::Evaluation&, bool text, const std::string& noun);

}  // namespace numemu::cli
