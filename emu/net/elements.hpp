// The float32 elements of a tensor: its own, or those of a caller, which are read where they lie.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <stdexcept>
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

}  // namespace numemu::net
