// n! in any type of whole numbers.
#pragma once

namespace numemu::policies {

/// 1 for n <= 1. The type must hold it: 64 bits do up to 20!.
template <class Integer>
Integer factorial(int n) {
  Integer result = 1;
  for (int i = 2; i <= n; ++i) result *= i;
  return result;
}

}  // namespace numemu::policies
