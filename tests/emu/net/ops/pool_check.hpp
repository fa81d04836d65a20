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
    const Shape from = as_volume(x), to = as_volume(y);
    const std::int64_t kernel[] = {o.kernel_depth, o.kernel_height, o.kernel_width};
    const std::int64_t stride[] = {o.stride_depth, o.stride_height, o.stride_width};
    const std::int64_t before[] = {o.pad_front, o.pad_top, o.pad_left};
    const std::int64_t after[] = {o.pad_back, o.pad_bottom, o.pad_right};
    const std::int64_t taps = kernel[0] * kernel[1] * kernel[2];
    for (std::int64_t out = 0; out < element_count(to); ++out) {
      const std::int64_t c = out % to[4], n = out / (to[1] * to[2] * to[3] * to[4]);
      const std::int64_t at[] = {out / (to[4] * to[3] * to[2]) % to[1],
                                 out / (to[4] * to[3]) % to[2], out / to[4] % to[3]};
      std::int64_t read = 0;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t of[] = {tap / (kernel[1] * kernel[2]), tap / kernel[2] % kernel[1],
                                   tap % kernel[2]};
        bool visited = true, inside = true;
        std::int64_t in = n;
        for (int a = 0; a < 3; ++a) {
          const std::int64_t place = at[a] * stride[a] + of[a] - before[a];
          visited = visited && place < from[a + 1] + after[a];
          inside = inside && place >= 0 && place < from[a + 1];
          in = in * from[a + 1] + place;
        }
        if (visited) body(out, inside ? in * from[4] + c : -1, read++);
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
            PoolOptions o{kernel.height, kernel.width, stride.height, stride.width, pads.top,
                          pads.left,     pads.bottom,  pads.right,    ceil_mode,    include};
            o.stride_depth = 1;
            if (pads.top >= kernel.height || pads.bottom >= kernel.height) continue;
            if (pads.left >= kernel.width || pads.right >= kernel.width) continue;
            const Shape x{2, 6, 5, 2};
            cases.push_back(
                {o,
                 x,
                 {2, placed(6, kernel.height, stride.height, pads.top, pads.bottom, ceil_mode),
                  placed(5, kernel.width, stride.width, pads.left, pads.right, ceil_mode), 2}});
          }
  for (const bool include : {false, true}) {
    PoolOptions line{1, 3, 1, 2, 0, 1, 0, 1, false, include};
    line.stride_depth = 1;
    cases.push_back({line, {2, 7, 3}, {2, 4, 3}});
    PoolOptions volume{2, 3, 2, 1, 1, 1, 0, 1, false, include};
    volume.kernel_depth = 3, volume.stride_depth = 2, volume.pad_front = volume.pad_back = 1;
    cases.push_back({volume, {2, 4, 5, 4, 2}, {2, 2, 3, 4, 2}});
  }
  return cases;
}

}  // namespace numemu::net::test
