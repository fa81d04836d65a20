// Where a property of sorted elements ends.
#pragma once
#include <algorithm>
#include <cstddef>

namespace numemu {

/// The first index from `first` on that is not inside, `end` where there is none: steps that
/// double, then bisection, because most runs are short.
template <class Inside>
std::size_t first_outside(std::size_t first, std::size_t end, const Inside& inside) {
  std::size_t last = first, step = 1;
  while (last < end && inside(last)) {
    first = last + 1;
    last += step;
    step *= 2;
  }
  last = std::min(last, end);
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (inside(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

}  // namespace numemu
