// Ways to store optimizer state and master weights, what their rounding does to updates and to
// second moments during training, and what float32 numbers predict of it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emu/net/data/dataset.hpp"
#include "emu/net/numerics.hpp"
#include "emu/net/train/options.hpp"
#include "experiments/engine/experiment.hpp"
#include "formats/storage/fields.hpp"

namespace numemu::experiments::optimizer_state {

struct Method {
  std::string name;
  Json recipe;              ///< roles.state and update alone
  const char* claim = "";   ///< key of the claim about its top-1 beside float32; "": none
  std::string second = {};  ///< block format of the second moment; "": no block format
  bool stochastic = false;  ///< its rounding, or that of the masters
  bool masters = false;     ///< bfloat16
};

/// float32 first. Blocks have `block` elements.
std::vector<Method> methods(std::int64_t block);

/// Probabilities that an update d leaves a bfloat16 weight w as it is: to nearest it is 1 where
/// |d| < ulp(w) / 2, stochastically 1 - |d| / ulp(w) where that is above 0.
struct Lost {
  double nearest = 0, stochastic = 0;
};
Lost lost_update(float w, float d);

/// Shares of the updates that are not 0 and of the second moments whose element had a gradient, and
/// the largest update over the largest rate.
struct Watched {
  double lost = 0, lost_nearest = 0, lost_stochastic = 0, zeros = 0, largest = 0;
  Named<double> zeros_of = {};  ///< predicted, by method

  static void fields(auto& self, const auto& visit) {
    visit("lost", self.lost);
    visit("lost_nearest", self.lost_nearest);
    visit("lost_stochastic", self.lost_stochastic);
    visit("zeros", self.zeros);
    visit("largest", self.largest);
    visit("zeros_of", self.zeros_of);
  }
};

/// Numerics that measure. In float32 they predict, too.
class Watch final : public net::Forwarding {
 public:
  /// Updates are counted in the last of every `every` steps, zeros after `zeros_after` steps.
  /// `predicted`: methods with block formats of one size, whose second moments are predicted.
  Watch(net::Numerics& inner, const net::TrainOptions&, std::int64_t zeros_after,
        std::int64_t every, std::vector<Method> predicted);

  void update(const net::Step&, const net::Update&) override;
  void optimizer_state(const net::Step&, std::string_view parameter, std::string_view name,
                       net::Tensor&) override;

  Watched watched() const;

 private:
  /// The elements of a block of a parameter.
  using OfBlock = std::function<void(std::size_t first, std::size_t end)>;
  void for_each_block(const net::Tensor&, const OfBlock&) const;
  void predict(std::string_view parameter, const net::Tensor& second);

  std::int64_t zeros_after_, every_;
  double rate_, rest_;  ///< rest: 1 - beta2
  std::vector<Method> predicted_;
  std::map<std::string, std::vector<float>, std::less<>> peaks_;    ///< largest squared gradient
  std::map<std::string, std::vector<float>, std::less<>> highest_;  ///< of a block, at its first
  double updates_ = 0, lost_ = 0, nearest_ = 0, stochastic_ = 0, largest_ = 0;
  double seconds_ = 0, zeros_ = 0;
  std::vector<double> zeros_of_;
};

/// Trains `net` with every method and compares top-1, lost updates and second moments of 0.
void add_net(const ExperimentRun&, const std::string& net, const net::Dataset&, Conclusion&);

}  // namespace numemu::experiments::optimizer_state
