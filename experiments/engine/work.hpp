// Progress of long work: the engine counts, its caller draws.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace numemu::experiments {

/// Work is counted in samples through the float32 network that take as long; an estimate.
struct WorkState {
  std::string_view phase;  ///< "float32 baseline", "evaluation"
  double done = 0, total = 0;
  double free = 0;  ///< of `done`, what needed no time
};
/// One call at a time; `done` never falls.
using OnWork = std::function<void(const WorkState&)>;

/// Work in phases, one after the other.
class Work {
 public:
  /// `before`: of the total, what is done when the first phase begins.
  Work(const OnWork& told, double total, double before = 0)
      : told_(told), total_(total), before_(before) {}
  /// Ends the phase before. `cost` is the new one's part of the total.
  void begin(std::string_view phase, double cost);
  /// So many of the phase's samples are through; from any thread.
  void add(std::int64_t samples, std::int64_t of);
  /// The phase that runs needs no time.
  void skip();

 private:
  void tell();
  const OnWork& told_;
  double total_, before_, cost_ = 0, share_ = 0, free_ = 0;
  std::int64_t samples_ = 0;
  std::string_view phase_;
  std::mutex mutex_;
};

/// Costs of a workbench and of a point, for `images` test samples and so many of the reference.
double bench_cost(std::int64_t images, std::int64_t reference);
double point_cost(std::int64_t images, std::int64_t reference, std::int64_t calibration,
                  bool predictions);
/// Of a point: calibration on so many samples, predictions of tensors, of layers and of accuracy;
/// noise measured on the reference; evaluation. Measured on ResNet-20 with blocks and elements of 4
/// and 8 bits. Calibration and predictions run in float32, the other parts under the point's
/// numerics.
double calibration_cost(std::int64_t samples);
double tensors_cost(std::int64_t reference);
double layers_cost(std::int64_t reference);
double accuracy_cost(std::int64_t images);
double noise_cost(std::int64_t reference);
double evaluation_cost(std::int64_t images);

}  // namespace numemu::experiments
