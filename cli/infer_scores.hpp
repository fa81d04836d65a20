// Scores of numemu infer: outputs under a recipe against those in float32.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "emu/net/train/evaluate.hpp"
#include "formats/storage/json.hpp"

namespace numemu::cli {

class InferScores {
 public:
  /// Throws Error for a metric that needs targets.
  InferScores(const std::vector<std::string>& names, std::int64_t samples);
  /// Outputs of the next samples, [samples, ...].
  void add(const net::Tensor& output, const net::Tensor& float32);
  /// experiments::scores_json(), samples apart.
  Json json() const;

 private:
  std::vector<const net::Score*> scores_;
  net::Evaluation own_, float32_;
};

}  // namespace numemu::cli
