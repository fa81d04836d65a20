// What a forward pass differs from float32 at the output of every layer that multiplies.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/calibrate/reference.hpp"

namespace numemu::experiments {

/// Mean squares of a layer's output: of the difference, and of float32.
struct Power {
  double noise = 0, signal = 0;
};
/// Of n outputs y beside float32 outputs x.
Power power_of(std::int64_t n, const float* y, const float* x);

/// Compares one pass on samples [first, first + count) of the reference with the reference: an
/// observer of the graph hands over what whole operators give, and the numerics the products of
/// those (recurrent ones) whose parts are layers of their own.
class LayerPowers {
 public:
  /// Reads the reference until its end of life.
  LayerPowers(const net::Graph&, const policies::FloatReference&, std::int64_t first,
              std::int64_t count);
  /// A forward product that was just computed; those of whole operators are passed over.
  void add(const net::Product&);
  void add(const net::Node&, const net::Tensor& output);
  /// By layer; the pass must be over. NaN of a layer whose product the pass never computed.
  std::map<std::string, Power> means() const;
  /// By layer, the mean squares of every sample; the pass must be over.
  std::map<std::string, std::vector<Power>> of_samples() const;

 private:
  struct Part {
    const net::Tensor* clean = nullptr;  ///< [batch, times, ...], or [batch, ...] of one product
    std::int64_t products = 0, elements = 0;
    bool heard = false;          ///< of a whole operator
    std::vector<Power> samples;  ///< sums of squares
  };
  const policies::FloatReference& reference_;
  std::int64_t first_, count_;
  std::map<std::string, Part, std::less<>> layers_;
  std::set<std::string, std::less<>> parts_;  ///< layers that are products of their operator
};

}  // namespace numemu::experiments
