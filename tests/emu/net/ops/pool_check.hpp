// Pooling windows by walking: which elements each result reads, for many options.
#pragma once
#include <string>
#include <vector>

#include "emu/net/ops/pool_options.hpp"

namespace numemu::net::test {

struct PoolCase {
  PoolOptions options;
  Shape x, y;

  std::string name() const {
    const PoolOptions& o = options;
    std::string text;
    for (const std::int64_t number :
         {o.kernel_height, o.kernel_width, o.stride_height, o.stride_width, o.pad_top, o.pad_left,
          o.pad_bottom, o.pad_right}) {
      text += std::to_string(number) + " ";
    }
    return text + (o.ceil_mode ? "ceil " : "floor ") + (o.count_include_pad ? "padded" : "inside");
  }

  /// body(out, in, read): flat indices, `in` -1 in the border; `read` numbers the elements of a
  /// window. What lies beyond the border is not visited.
  template <class Body>
  void for_each_read(const Body& body) const {
    const PoolOptions& o = options;
    const std::int64_t sy = o.stride_height, sx = o.stride_width;
    for (std::int64_t n = 0; n < y[0]; ++n)
      for (std::int64_t i = 0; i < y[1]; ++i)
        for (std::int64_t j = 0; j < y[2]; ++j)
          for (std::int64_t c = 0; c < y[3]; ++c) {
            std::int64_t read = 0;
            for (std::int64_t a = 0; a < o.kernel_height; ++a)
              for (std::int64_t b = 0; b < o.kernel_width; ++b) {
                const std::int64_t h = i * sy + a - o.pad_top, w = j * sx + b - o.pad_left;
                if (h >= x[1] + o.pad_bottom || w >= x[2] + o.pad_right) continue;
                const bool inside = h >= 0 && h < x[1] && w >= 0 && w < x[2];
                body(((n * y[1] + i) * y[2] + j) * y[3] + c,
                     inside ? ((n * x[1] + h) * x[2] + w) * x[3] + c : -1, read++);
              }
          }
  }
};

/// The number of windows along an axis, found by placing them one after the other.
inline std::int64_t placed(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                           std::int64_t before, std::int64_t after, bool ceil_mode) {
  std::int64_t count = 0;
  for (std::int64_t start = -before;; start += stride, ++count) {
    const bool whole = start + kernel <= size + after;
    const bool started = count > 0 && start - stride + kernel < size + after && start < size;
    if (!whole && !(ceil_mode && started)) return count;
  }
}

inline std::vector<PoolCase> pool_cases() {
  struct Pads {
    std::int64_t top, left, bottom, right;
  };
  struct Axes {
    std::int64_t height, width;
  };
  std::vector<PoolCase> cases;
  for (const Axes kernel : {Axes{1, 1}, Axes{2, 2}, Axes{3, 3}, Axes{3, 2}})
    for (const Axes stride : {Axes{1, 1}, Axes{2, 2}, Axes{3, 1}, Axes{4, 3}})
      for (const Pads pads : {Pads{0, 0, 0, 0}, Pads{1, 1, 1, 1}, Pads{0, 1, 2, 0}})
        for (const bool ceil_mode : {false, true})
          for (const bool include : {false, true}) {
            const PoolOptions o{kernel.height, kernel.width, stride.height, stride.width, pads.top,
                                pads.left,     pads.bottom,  pads.right,    ceil_mode,    include};
            if (pads.top >= kernel.height || pads.bottom >= kernel.height) continue;
            if (pads.left >= kernel.width || pads.right >= kernel.width) continue;
            const Shape x{2, 6, 5, 2};
            cases.push_back(
                {o,
                 x,
                 {2, placed(6, kernel.height, stride.height, pads.top, pads.bottom, ceil_mode),
                  placed(5, kernel.width, stride.width, pads.left, pads.right, ceil_mode), 2}});
          }
  return cases;
}

}  // namespace numemu::net::test
