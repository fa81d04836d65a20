// Pillow 9's Resample.c for 8 bits a channel, in its order of operations.
#include <algorithm>
#include <cmath>

#include "emu/net/data/picture.hpp"

namespace numemu::net {
namespace {

constexpr int kWeightBits = 32 - 8 - 2;

/// The weights of one output line: pixels first to first + weight.size() - 1.
struct Line {
  std::int64_t first = 0;
  std::vector<std::int32_t> weight;
};

std::vector<Line> lines_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0), inverse = 1.0 / support;
  std::vector<Line> lines(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Line& line = lines[i];
    line.first = std::max(static_cast<std::int64_t>(centre - support + 0.5), std::int64_t{0});
    const std::int64_t last = std::min(static_cast<std::int64_t>(centre + support + 0.5), from);
    std::vector<double> weight;
    double sum = 0;
    for (std::int64_t x = line.first; x < last; ++x) {
      const double away = std::fabs((static_cast<double>(x) - centre + 0.5) * inverse);
      weight.push_back(away < 1 ? 1 - away : 0);
      sum += weight.back();
    }
    for (double w : weight) {
      if (sum != 0) w /= sum;
      const double scaled = w * (1 << kWeightBits);
      line.weight.push_back(static_cast<std::int32_t>(w < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return lines;
}

/// Output (i, j, c) is at (i * lines + j) * 3 + c, from input lines `stride` apart.
void resample(const std::uint8_t* in, const std::vector<Line>& lines, std::int64_t stride,
              std::uint8_t* out, std::int64_t out_stride) {
  for (std::size_t j = 0; j < lines.size(); ++j) {
    for (int c = 0; c < 3; ++c) {
      std::int32_t sum = 1 << (kWeightBits - 1);
      const std::uint8_t* pixel = in + lines[j].first * stride + c;
      for (const std::int32_t weight : lines[j].weight) {
        sum += *pixel * weight;
        pixel += stride;
      }
      out[static_cast<std::int64_t>(j) * out_stride + c] =
          static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
    }
  }
}

}  // namespace

Picture resize_bilinear(const Picture& in, std::int64_t height, std::int64_t width) {
  Picture wide{in.height, width, {}};
  if (width == in.width) {
    wide.rgb = in.rgb;
  } else {
    wide.rgb.resize(static_cast<std::size_t>(in.height * width * 3));
    const std::vector<Line> lines = lines_of(in.width, width);
    for (std::int64_t y = 0; y < in.height; ++y)
      resample(in.rgb.data() + y * in.width * 3, lines, 3, wide.rgb.data() + y * width * 3, 3);
  }
  if (height == in.height) return wide;
  Picture out{height, width,
              std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  const std::vector<Line> lines = lines_of(in.height, height);
  for (std::int64_t x = 0; x < width; ++x)
    resample(wide.rgb.data() + x * 3, lines, width * 3, out.rgb.data() + x * 3, width * 3);
  return out;
}

Picture resize_shorter(const Picture& in, std::int64_t size) {
  const std::int64_t shorter = std::min(in.height, in.width);
  if (shorter == size) return in;
  // int(size * long / short) of Python, where both factors are whole numbers.
  return in.height <= in.width ? resize_bilinear(in, size, size * in.width / shorter)
                               : resize_bilinear(in, size * in.height / shorter, size);
}

Picture crop_centre(const Picture& in, std::int64_t size) {
  Picture out{size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(size * size * 3), 0)};
  // Python's round(): halves go to even. torchvision pads a picture that is too small, half of the
  // difference before it, rounded down.
  const auto start = [&](std::int64_t extent) {
    if (extent < size) return -((size - extent) / 2);
    const std::int64_t twice = extent - size;
    return twice / 2 + (twice % 2 != 0 && twice / 2 % 2 != 0 ? 1 : 0);
  };
  const std::int64_t top = start(in.height), left = start(in.width);
  for (std::int64_t y = 0; y < size; ++y) {
    if (y + top < 0 || y + top >= in.height) continue;
    const std::int64_t first = std::max<std::int64_t>(0, -left),
                       last = std::min(size, in.width - left);
    std::copy_n(in.rgb.begin() + ((y + top) * in.width + first + left) * 3, (last - first) * 3,
                out.rgb.begin() + (y * size + first) * 3);
  }
  return out;
}

}  // namespace numemu::net
