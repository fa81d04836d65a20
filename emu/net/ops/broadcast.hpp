// Numpy's broadcasting: how shapes meet, and runs of elements in step.
#pragma once
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "emu/net/ops/elementwise.hpp"
#include "emu/net/tensor.hpp"

namespace numemu::net {

/// Up to four tensors seen as one shape: axes of extent 1 (and missing leading axes) are repeated.
class Broadcast {
 public:
  static constexpr std::size_t kInputs = 4;
  static constexpr std::int64_t kRun = 2048;  ///< longest run: its buffers stay in the first cache
  using Runs = std::array<const float*, kInputs>;

  /// Throws Error naming `what` and the shapes when they do not fit.
  Broadcast(std::string_view what, Shapes inputs);
  const Shape& shape() const { return shape_; }

  /// body(first, n, runs) for runs that cover the elements [0, size) of shape(), from several
  /// threads: runs[k] holds input k's elements [first, first + n), null where inputs[k] is null.
  template <class Body>
  void for_each_run(std::span<const float* const> inputs, const Body& body) const;

 private:
  using Offsets = std::array<std::int64_t, kInputs>;
  struct Axis {
    std::int64_t extent = 1;
    Offsets strides{};  // 0: repeated
  };
  Shape shape_;
  // Neighbours that are repeated alike are one axis; the last one is the run.
  std::vector<Axis> outer_;
  Axis inner_;
};

template <class Body>
void Broadcast::for_each_run(std::span<const float* const> inputs, const Body& body) const {
  const std::int64_t inner = inner_.extent;
  std::int64_t rows = inner == 0 ? 0 : 1;
  for (const Axis& axis : outer_) rows *= axis.extent;
  if (rows == 0) return;
  const std::int64_t tiles = (inner + kRun - 1) / kRun;
  const std::int64_t group = std::max<std::int64_t>(1, kRun / inner);  // rows of one piece of work
  const std::int64_t groups = (rows + group - 1) / group;
  for_each_row(groups * tiles, kRun, [&](std::int64_t work) {
    float repeated[kInputs][kRun];
    const std::int64_t column = work % tiles * kRun, n = std::min(kRun, inner - column);
    const std::int64_t first_row = work / tiles * group;
    Offsets offsets{}, filled{};
    filled.fill(-1);
    Runs runs{};
    for (std::int64_t row = first_row; row < std::min(rows, first_row + group); ++row) {
      offsets.fill(0);
      std::int64_t rest = row;
      for (std::size_t a = outer_.size(); a-- > 0;) {
        const std::int64_t place = a == 0 ? rest : rest % outer_[a].extent;
        if (a > 0) rest /= outer_[a].extent;
        for (std::size_t k = 0; k < inputs.size(); ++k) offsets[k] += place * outer_[a].strides[k];
      }
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (inputs[k] == nullptr) continue;
        if (inner_.strides[k] != 0) {
          runs[k] = inputs[k] + offsets[k] + column;
        } else if (filled[k] != offsets[k]) {
          std::fill_n(repeated[k], n, inputs[k][offsets[k]]);
          filled[k] = offsets[k];
          runs[k] = repeated[k];
        }
      }
      body(row * inner + column, n, runs);
    }
  });
}

}  // namespace numemu::net
