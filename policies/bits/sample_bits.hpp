// Bits for each sample of each tensor kept for backward, from ranges and gradients (ActNN).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/graph.hpp"

namespace numemu::policies {

// Bits per item under a budget, by the greedy algorithm of ActNN (Chen et al., ICML 2021).

/// Something stored with 1 to 8 bits per element, whose squared error with b bits is
/// sensitivity / (2^b - 1)^2.
struct BitItem {
  double sensitivity = 0;  ///< finite, at least 0
  double weight = 1;       ///< elements, above 0
};

inline constexpr int kMostItemBits = 8;

/// The squared error of one item with that many bits, and the sum over items.
double item_loss(const BitItem&, int bits);
double bits_loss(const std::vector<BitItem>&, const std::vector<int>& bits);

/// Starts with 8 bits each and takes one bit at a time from the item whose error grows least per
/// weight (of equal ones that with the larger index), until the sum of weight bits is at most
/// `budget` or all items have 1 bit. With equal weights this is the optimum, as errors are convex
/// in the bits. O(N log N).
std::vector<int> greedy_bits(const std::vector<BitItem>&, double budget);

/// Two stages, both greedy_bits(). Within a step the samples of a tensor share the bits that the
/// tensor has on average, by the ranges of their groups. At the end of a step all samples of all
/// tensors that linear and convolution layers read share the average of the recipe by
///   C = sum over groups of (elements) range^2 / 4 x (sum over readers of taps E|g|^2 / pixels),
/// g a sample's gradient of the reader's output, in the mean over the batch; the average of a
/// tensor is that of its next step. A tensor that other operators read follows the one that the
/// layer before it reads. Chen et al. 2021, appendix; the published code.
class SampleBits {
 public:
  /// `averages`: by value, bits per element; values with the same average share a budget.
  SampleBits(const net::Graph&, std::map<std::string, double, std::less<>> averages);

  /// Of each sample of x [samples, ...], whose groups are `group` neighbours of a sample.
  std::vector<int> choose(std::string_view value, const net::Tensor& x, std::int64_t group);
  /// The gradient of a node's output.
  void see_gradient(std::string_view node, const net::Tensor& g);
  void end_step();

  /// The average of each value's next step; all start with that of the recipe.
  const std::map<std::string, double, std::less<>>& next() const { return next_; }
  /// Sets one that was saved. Throws Error naming `where` for a value that has none, or a number
  /// that is no average.
  void restore(std::string_view value, double bits, const std::string& where);

 private:
  struct Reader {
    std::string node;
    double taps = 0;  ///< products that read an element, per output channel, times its channels
  };
  struct Value {
    std::vector<Reader> readers;  ///< none: an operator without weights reads it
    std::string follows;          ///< then the value whose bits it has; "" for none
  };
  struct Squares {
    double sum = 0, samples = 0;
  };

  std::map<std::string, Value, std::less<>> values_;
  std::map<std::string, double, std::less<>> averages_, next_;
  // Of the step that runs: by value, C of its samples without the gradients; by node, |g|^2.
  std::map<std::string, std::vector<BitItem>, std::less<>> items_;
  std::map<std::string, Squares, std::less<>> squares_;
};

}  // namespace numemu::policies
