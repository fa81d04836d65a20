// The float32 baseline of a workbench, kept between runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/evaluate.hpp"
#include "experiments/engine/bench/trained_net.hpp"
#include "policies/calibrate/reference.hpp"

namespace numemu::experiments {

/// One file in FOLDER/baselines, named by everything that decides the evaluation: numerics version,
/// nodes and parameters of the graph, the file it came from, data set, number of samples, and the
/// reference's samples and logits. The file holds that key and a digest of itself: one that is
/// damaged, cut or another's is no file, and is written anew.
class BaselineCache {
 public:
  /// An empty folder keeps nothing.
  BaselineCache(const std::string& folder, const TrainedNet&, const net::Dataset&,
                const policies::FloatReference&, std::int64_t images);

  /// Sets the file's time, so that write() keeps it longer.
  std::optional<net::Evaluation> read() const;
  /// A folder that cannot be written costs the next run its time, nothing else. Beyond kMostBytes
  /// the files that were used longest ago go; so do temporary files of killed writers.
  void write(const net::Evaluation&) const;

  static constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;   ///< of all files
  static constexpr std::int64_t kMostTargets = std::int64_t{4} << 20;  ///< of one evaluation
  /// "" where nothing is kept.
  const std::string& path() const { return path_; }

 private:
  std::string folder_, key_, path_;
  std::int64_t images_ = 0, targets_ = 0;
};

}  // namespace numemu::experiments
