#include "emu/net/elements.hpp"

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

}  // namespace numemu::net
