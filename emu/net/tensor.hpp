// A dense float32 array with a shape; activations are NHWC, convolution weights OHWI.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace numemu::net {

/// A vector that may read the memory of another. A copy owns its elements. data(), begin() and what
/// changes the size make them its own first, so that lent memory never changes. Who writes by index
/// owns the elements already: a check of every element there cost training 4 to 10 %.
class Elements {
 public:
  using value_type = float;

  Elements() = default;
  Elements(std::vector<float> own) : own_(std::move(own)) { settle(); }
  Elements(std::initializer_list<float> own) : own_(own) { settle(); }
  explicit Elements(std::size_t size, float value = 0) : own_(size, value) { settle(); }
  template <class Iterator>
  Elements(Iterator first, Iterator last) : own_(first, last) {
    settle();
  }
  /// Memory that stays as it is while this, or what is moved from it, lives.
  static Elements borrowed(std::span<const float>);

  Elements(const Elements& other) : Elements(other.begin(), other.end()) {}
  Elements(Elements&& other) noexcept { swap(other); }
  Elements& operator=(const Elements&);
  Elements& operator=(Elements&& other) noexcept;
  ~Elements() = default;

  bool is_borrowed() const { return begin_ != own_.data(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  const float* data() const { return begin_; }
  const float* begin() const { return begin_; }
  const float* end() const { return begin_ + size_; }
  const float& operator[](std::size_t i) const { return begin_[i]; }
  /// Throws std::out_of_range.
  const float& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("Elements::at");
    return begin_[i];
  }
  const float& front() const { return begin_[0]; }
  const float& back() const { return begin_[size_ - 1]; }

  float* data() { return is_borrowed() ? copied() : own_.data(); }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  float& operator[](std::size_t i) { return begin_[i]; }
  float& front() { return data()[0]; }
  float& back() { return data()[size_ - 1]; }

  template <class... Of>
  void assign(Of... of) {
    if (is_borrowed()) *this = Elements();
    own_.assign(of...);
    settle();
  }
  void resize(std::size_t size) {
    data();
    own_.resize(size);
    settle();
  }
  /// The added elements are not among these.
  void append(std::span<const float> added) {
    data();
    own_.insert(own_.end(), added.begin(), added.end());
    settle();
  }

  /// The elements, which are no longer this one's.
  std::vector<float> take();
  /// A copy of them.
  operator std::vector<float>() const { return {begin(), end()}; }
  void swap(Elements&) noexcept;

  friend bool operator==(const Elements& a, const Elements& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void settle() {
    begin_ = own_.data();
    size_ = own_.size();
  }
  float* copied();

  std::vector<float> own_;
  float* begin_ = nullptr;  ///< of lent memory, which only operator[] could write
  std::size_t size_ = 0;
};

using Shape = std::vector<std::int64_t>;
using Shapes = std::span<const Shape>;

/// Number of elements of a shape (1 for the scalar shape {}).
std::int64_t element_count(const Shape&);
/// "[128, 28, 28, 1]"
std::string to_string(const Shape&);

struct Tensor {
  Shape shape;
  Elements data;

  Tensor() = default;
  explicit Tensor(Shape s, float value = 0);
  /// Reads memory of the caller, element_count() floats that stay as they are while it lives.
  static Tensor borrowed(Shape, const float*);
  /// Number of elements, released ones too.
  std::int64_t size() const {
    return data.empty() ? released_ : static_cast<std::int64_t>(data.size());
  }
  std::int64_t dim(int axis) const { return shape.at(axis < 0 ? shape.size() + axis : axis); }
  /// No element is in memory.
  bool empty() const { return data.empty(); }
  /// Frees the data: shape and size stay, and data is empty.
  void release();

 private:
  std::int64_t released_ = 0;
};

struct NamedTensor {
  std::string name;
  Tensor value;
};

struct NamedShape {
  std::string name;
  Shape shape;         ///< of one sample
  bool image = false;  ///< [height, width, channels]; ONNX has the channels first
};
/// A packed batch [samples, elements of all parts] has the parts of a sample side by side. Gives a
/// tensor [samples, shape...] for each; of one part the batch itself.
std::vector<Tensor> unpacked(Tensor batch, std::span<const NamedShape> parts);

/// Reads samples [first, first + count) of the first axis where they lie.
Tensor borrowed_samples(const Tensor&, std::int64_t first, std::int64_t count);

/// Throws Error naming the tensor where Tensor::release() has freed its elements.
void require_elements(const Tensor&, std::string_view name);

}  // namespace numemu::net
