// The epochs of numemu train as rows of metrics.jsonl and as lines of text.
#pragma once
#include <string>
#include <vector>

#include "emu/net/kept_bytes.hpp"
#include "emu/net/train/evaluate.hpp"
#include "emu/net/train/metrics.hpp"
#include "formats/storage/json.hpp"
#include "policies/recipe/parameter_bytes.hpp"
#include "policies/recipe/staged_numerics.hpp"

namespace numemu::cli {

/// metrics.jsonl: one row per epoch; a resumed run leaves the file of an uninterrupted one.
class MetricsFile {
 public:
  /// Rows of a text have perplexity and bits per character or token of the validation; without
  /// validation samples its figures are null. `staged`: rows have the stage of the recipe; null
  /// without stages. `kept` counts what is kept for backward. `stored`: of every stage; empty
  /// where all of it is float32.
  MetricsFile(std::string path, const net::Dataset& data, const policies::StagedNumerics* staged,
              const net::KeptBytes& kept, std::vector<policies::ParameterBytes> stored)
      : path_(std::move(path)),
        data_(data),
        staged_(staged),
        kept_(kept),
        stored_(std::move(stored)) {}
  /// Replaces whatever is there by the rows of those epochs. Throws Error naming the file.
  void begin(const std::vector<net::EpochMetrics>&);
  void append(const net::EpochMetrics&);

 private:
  std::string row(const net::EpochMetrics&) const;
  std::string path_;
  const net::Dataset& data_;
  const policies::StagedNumerics* staged_;
  const net::KeptBytes& kept_;
  std::vector<policies::ParameterBytes> stored_;
};

/// "epoch   3  loss 0.0512  train 98.41 %  validation loss 0.0601  98.12 %"
std::string epoch_line(const net::EpochMetrics&, const net::Dataset&);
/// The line "kept for backward: 4812 bytes per sample, float32 35424"; nothing where none were
/// counted.
std::string kept_line(const net::KeptBytes::Sums*);
/// {"bytes_per_sample": 4812, "float32_bytes_per_sample": 35424}, or null.
Json kept_json(const net::KeptBytes::Sums*);
/// The line "stored of each parameter: 2.00 bytes of master weights, 2.13 of optimizer state", with
/// what they are in float32.
std::string stored_line(const policies::ParameterBytes&, const policies::ParameterBytes& float32);
/// {"master_bytes_per_parameter": 2, "state_bytes_per_parameter": 2.13}
Json stored_json(const policies::ParameterBytes&);
/// The metrics of --json for the test split, which has the tables of net::scores_for(data, {}).
Json test_json(const net::Evaluation&, const net::Dataset&);
/// "test 98.01 % of 10000 images, 95 % interval [..], loss .." of the same; of class maps "of
/// 145600 pixels in 200 images".
std::string test_line(const net::Evaluation&, const net::Dataset&);

}  // namespace numemu::cli
