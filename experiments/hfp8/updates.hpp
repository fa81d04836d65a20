// Updates that a low-precision master loses: what a float32 run predicts, and what happens.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emu/net/graph.hpp"
#include "formats/format.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments::hfp8 {

/// The distance from |w| to the next value of the format: 2^(floor(log2|w|) - m), and that of
/// subnormals below them.
double ulp_of(const Format&, double w);

/// Compares the weights of a network before and after a step, one weight matrix at a time.
class UpdateWatch {
 public:
  UpdateWatch(const Format& master, std::int64_t every) : master_(master), every_(every) {}
  /// After every step. Looks at the change that each `every`-th step made, from the second on.
  void see(const net::Graph&, std::int64_t step);
  /// [{step, layer, small, unchanged}]: shares of the weights whose change is below half an ulp of
  /// the master format (with those that did not change), and of those that did not change.
  const Json& records() const { return records_; }

 private:
  const Format& master_;
  std::int64_t every_;
  std::map<std::string, std::vector<float>> before_;
  Json records_ = Json::array();
};

}  // namespace numemu::experiments::hfp8
