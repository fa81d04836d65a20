// Shapes: their size with overflow checked, and their text.
#include "emu/net/tensor.hpp"

#include <algorithm>
#include <utility>

#include "formats/error.hpp"

namespace numemu::net {

Elements Elements::borrowed(std::span<const float> lent) {
  Elements elements;
  elements.begin_ = const_cast<float*>(lent.data());
  elements.size_ = lent.size();
  return elements;
}

Elements& Elements::operator=(const Elements& other) {
  if (this == &other) return *this;
  // Memory that is there already is used again, unless the other reads it.
  if (other.is_borrowed()) return *this = Elements(other);
  own_.assign(other.begin(), other.end());
  settle();
  return *this;
}

Elements& Elements::operator=(Elements&& other) noexcept {
  Elements(std::move(other)).swap(*this);
  return *this;
}

std::vector<float> Elements::take() {
  data();
  std::vector<float> own = std::move(own_);
  *this = Elements();
  return own;
}

void Elements::swap(Elements& other) noexcept {
  own_.swap(other.own_);
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
}

float* Elements::copied() {
  own_.assign(begin_, begin_ + size_);
  begin_ = own_.data();
  return own_.data();
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  bool overflow = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw Error("shape " + to_string(shape) + ": expected no negative extent");
    // A later zero makes the product fit again, so the verdict waits for the last axis.
    if (extent == 0) return 0;
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  if (overflow) throw Error("shape " + to_string(shape) + ": expected fewer than 2^63 elements");
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Tensor::Tensor(Shape s, float value)
    : shape(std::move(s)), data(static_cast<std::size_t>(element_count(shape)), value) {}

Tensor Tensor::borrowed(Shape s, const float* elements) {
  Tensor tensor;
  const auto count = static_cast<std::size_t>(element_count(s));
  tensor.shape = std::move(s);
  tensor.data = Elements::borrowed({elements, count});
  return tensor;
}

void Tensor::release() {
  released_ = size();
  data = Elements();
}

std::vector<Tensor> unpacked(Tensor batch, std::span<const NamedShape> parts) {
  std::vector<Tensor> out;
  if (parts.size() <= 1) {
    out.push_back(std::move(batch));
    return out;
  }
  const std::int64_t samples = batch.dim(0),
                     whole = batch.size() / std::max<std::int64_t>(1, samples);
  std::int64_t from = 0;
  for (const NamedShape& part : parts) {
    const std::int64_t each = element_count(part.shape);
    if (from + each > whole) break;  // of other parts: the error below
    Shape shape = part.shape;
    shape.insert(shape.begin(), samples);
    Tensor& x = out.emplace_back(std::move(shape));
    for (std::int64_t i = 0; i < samples; ++i)
      std::copy_n(batch.data.begin() + i * whole + from, each, x.data.begin() + i * each);
    from += each;
  }
  if (out.size() != parts.size() || from != whole)
    throw Error("batch " + to_string(batch.shape) + ": expected the elements of " +
                std::to_string(parts.size()) + " inputs in each sample");
  return out;
}

Tensor borrowed_samples(const Tensor& x, std::int64_t first, std::int64_t count) {
  Shape shape = x.shape;
  const std::int64_t each = x.size() / std::max<std::int64_t>(1, shape.at(0));
  shape[0] = count;
  return Tensor::borrowed(std::move(shape), x.data.data() + first * each);
}

void require_elements(const Tensor& tensor, std::string_view name) {
  if (tensor.empty() && tensor.size() > 0)
    throw Error("tensor " + std::string(name) + " " + to_string(tensor.shape) +
                ": expected elements in memory, found them released");
}

}  // namespace numemu::net
