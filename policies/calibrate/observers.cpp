// Cold: a negligible share of any run (docs/build.md).
#include "policies/calibrate/observers.hpp"

#include <algorithm>

#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "policies/calibrate/clip_thresholds.hpp"

namespace numemu::policies {
namespace {

using Rule = CalibrationPolicy::Rule;

class AbsmaxObserver final : public Observer {
 public:
  void see(const float* x, std::int64_t n) override {
    largest_ = std::max(largest_, largest_magnitude(x, n));
  }
  double threshold() const override { return largest_; }

 private:
  double largest_ = 0;
};

class HistogramObserver final : public Observer {
 public:
  HistogramObserver(const CalibrationPolicy& policy, const RolePolicy& role)
      : policy_(policy), role_(role) {}
  void see(const float* x, std::int64_t n) override { histogram_.add(x, n); }
  double threshold() const override { return histogram_threshold(policy_, role_, histogram_); }

 private:
  CalibrationPolicy policy_;
  RolePolicy role_;
  MagnitudeHistogram histogram_;
};

}  // namespace

double histogram_threshold(const CalibrationPolicy& policy, const RolePolicy& role,
                           const MagnitudeHistogram& histogram) {
  if (policy.rule == Rule::percentile) return percentile_threshold(histogram, policy.percentile);
  Conversion conversion;
  conversion.format = role.format;
  conversion.rounding = role.rounding;
  return policy.rule == Rule::mse ? mse_threshold(histogram, conversion)
                                  : kl_threshold(histogram, conversion);
}

std::unique_ptr<Observer> Observer::make(const CalibrationPolicy& policy, const RolePolicy& role) {
  if (policy.rule == Rule::dynamic)
    throw Error("calibration rule dynamic uses no observer: each tensor sets its own scale");
  if (policy.rule == Rule::absmax) return std::make_unique<AbsmaxObserver>();
  return std::make_unique<HistogramObserver>(policy, role);
}

}  // namespace numemu::policies
