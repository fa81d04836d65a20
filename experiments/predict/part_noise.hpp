// The noise of layers that are parts of their operator, product by product.
#pragma once
#include <map>
#include <string>

#include "policies/calibrate/reference.hpp"

namespace numemu::experiments {

/// Observers of the graph do not see the single products of a recurrent operator. This class sums
/// their deviations from float32 in one forward pass on the reference's samples.
class PartNoise {
 public:
  /// Reads the reference until its end of life.
  PartNoise(const net::Graph&, const policies::FloatReference&);
  /// A forward product that was just computed; those of whole operators are passed over.
  void add(const net::Product&);
  /// Mean square of the difference, by layer; a pass must be over.
  std::map<std::string, double> mean_squares() const;

 private:
  struct Part {
    const net::Tensor* clean = nullptr;  ///< [batch, times, ...], or [batch, ...] of one product
    std::int64_t products = 0, elements = 0;
    double squares = 0;
  };
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace numemu::experiments
