// Layers whose weights every pattern can mask, and what a mask does to their outputs.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/graph.hpp"
#include "emu/net/numerics.hpp"
#include "policies/calibrate/least_squares.hpp"

namespace numemu::experiments {

/// The largest M among the patterns compared.
inline constexpr std::int64_t kMostGroup = 8;

/// Layers with one weight whose input channels are a multiple of 8, so that every pattern keeps
/// half of it. Throws Error where the network has none.
std::vector<std::string> even_layers(const net::Graph&);

/// Inputs and outputs of the layers' weight products in float32: the squared error of their outputs
/// under other weights.
class LayerErrors : public net::Numerics {
 public:
  explicit LayerErrors(const std::vector<std::string>& layers);
  void product(const net::Step&, const net::Product&) override;
  /// Sum of the squared errors of the outputs with these weights [out, ..., in], over the sum of
  /// the squared outputs.
  double relative(const std::string& layer, const net::Tensor& weight) const;

 private:
  std::map<std::string, std::vector<policies::LeastSquares>, std::less<>> squares_;
};

}  // namespace numemu::experiments
