// A linear autoencoder of windows that learns online: two one-dimensional convolutions whose stride
// is their width.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace numemu::policies {

/// Encodes `window` neighbours as `code` numbers z = E x, and decodes them as D z; the last window
/// is filled with zeros. Both are linear, so that the decoded mean of codes is the mean of what
/// each decodes to, up to rounding, and principal components bound the error from below (Baldi and
/// Hornik 1989).
class Autoencoder {
 public:
  /// Weights drawn from the seed. 1 <= code <= window.
  Autoencoder(std::int64_t window, std::int64_t code, std::uint64_t seed);

  /// A step of Adam on the mean squared error of the windows over their mean square. Numbers that
  /// are all zero, or not all finite, teach nothing.
  void train(std::span<const float> x);
  /// D E x, in place. Windows of which that is not finite stay as they are.
  void reconstruct(std::span<float> x) const;
  /// Numbers that n values are encoded as.
  std::int64_t codes(std::size_t n) const { return windows(n) * code_; }

  /// All that it learnt: weights, moments, the number of steps.
  std::span<const float> state() const { return state_; }
  /// What state() gave. Throws Error if it has another size.
  void set_state(std::span<const float>);

 private:
  std::int64_t windows(std::size_t n) const {
    return (static_cast<std::int64_t>(n) + window_ - 1) / window_;
  }
  std::size_t weights() const { return static_cast<std::size_t>(2 * window_ * code_); }

  std::int64_t window_, code_;
  /// E [code, window], D [window, code], their first and second moments, the steps.
  std::vector<float> state_;
};

}  // namespace numemu::policies
