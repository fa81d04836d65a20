// Max-pooling: both directions walk the windows of one image; images go to threads.
#include "emu/net/ops/max_pool.hpp"

#include "emu/net/ops/elementwise.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// A window of kSize x kSize elements, or `any` x `any` where kSize is 0: the compiler unrolls the
// size that networks use. Without branches: which element wins is as good as random.
template <std::int64_t kSize>
struct Window {
  std::int64_t any, width, channels;

  float max(const float* corner) const {
    const std::int64_t size = kSize > 0 ? kSize : any;
    float value = corner[0];
    for (std::int64_t y = 0; y < size; ++y) {
      for (std::int64_t x = 0; x < size; ++x) {
        const float candidate = corner[(y * width + x) * channels];
        const bool wins = (candidate > value) | (candidate != candidate);
        value = wins ? candidate : value;
      }
    }
    return value;
  }

  // Offset of the first maximum from the window's corner.
  std::int64_t argmax(const float* corner) const {
    std::int64_t best = 0;
    const std::int64_t size = kSize > 0 ? kSize : any;
    float value = corner[0];
    for (std::int64_t y = 0; y < size; ++y) {
      for (std::int64_t x = 0; x < size; ++x) {
        const std::int64_t offset = (y * width + x) * channels;
        const float candidate = corner[offset];
        const bool wins = (candidate > value) | ((candidate != candidate) & (value == value));
        best = wins ? offset : best;
        value = wins ? candidate : value;
      }
    }
    return best;
  }
};

}  // namespace

MaxPool::MaxPool(std::int64_t size, std::int64_t stride)
    : size_(size), stride_(stride == 0 ? size : stride) {
  if (size_ < 1 || stride_ < 1) throw Error("max_pool: size and stride must be positive");
}

Shape MaxPool::output_shape(std::span<const Shape> inputs) const {
  if (inputs.size() != 1 || inputs[0].size() != 4 || inputs[0][1] < size_ || inputs[0][2] < size_) {
    throw Error("max_pool: expected one input [batch, height, width, channels] of at least " +
                std::to_string(size_) + "x" + std::to_string(size_) + ", got " +
                (inputs.empty() ? "none" : to_string(inputs[0])));
  }
  const Shape& x = inputs[0];
  return {x[0], (x[1] - size_) / stride_ + 1, (x[2] - size_) / stride_ + 1, x[3]};
}

template <class Body>
void MaxPool::for_each_window(const Shape& x, const Shape& y, const Body& body) const {
  const std::int64_t channels = x[3], image = x[1] * x[2] * channels;
  const auto walk = [&](const auto& window) {
    for_each_row(y[0], image, [&](std::int64_t n) {
      std::int64_t out = n * y[1] * y[2] * channels;
      for (std::int64_t oh = 0; oh < y[1]; ++oh) {
        for (std::int64_t ow = 0; ow < y[2]; ++ow) {
          const std::int64_t corner = n * image + (oh * x[2] + ow) * stride_ * channels;
          for (std::int64_t c = 0; c < channels; ++c) body(window, corner + c, out++);
        }
      }
    });
  };
  if (size_ == 2) {
    walk(Window<2>{2, x[2], channels});
  } else {
    walk(Window<0>{size_, x[2], channels});
  }
}

void MaxPool::forward(const OpCall&, std::span<const Tensor* const> inputs, Tensor& output) const {
  const float* const x = inputs[0]->data.data();  // [n, h, w, c]
  float* const y = output.data.data();            // [n, oh, ow, c]
  for_each_window(inputs[0]->shape, output.shape,
                  [=](const auto& window, std::int64_t in, std::int64_t out) {
                    y[out] = neutral(window.max(x + in));
                  });
}

void MaxPool::backward(const OpCall&, std::span<const Tensor* const> inputs, const Tensor*,
                       const Tensor& grad_output, std::span<Tensor> grad_inputs, std::span<Tensor>,
                       bool want_inputs) const {
  if (!want_inputs) return;
  const float* const x = inputs[0]->data.data();   // [n, h, w, c]
  const float* const g = grad_output.data.data();  // [n, oh, ow, c]
  float* const grad = grad_inputs[0].data.data();  // zero on entry; windows may overlap
  for_each_window(inputs[0]->shape, grad_output.shape,
                  [=](const auto& window, std::int64_t in, std::int64_t out) {
                    float& target = grad[in + window.argmax(x + in)];
                    target = neutral(target + g[out]);
                  });
}

}  // namespace numemu::net
