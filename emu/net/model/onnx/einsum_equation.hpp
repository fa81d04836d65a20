// The equation of an Einsum.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// The labels of each operand and of the result, a letter each, '.' for an ellipsis. Where the
/// equation has no result: the ellipsis, then what occurs once, in the order of letters.
struct EinsumEquation {
  std::vector<std::string> terms;
  std::string result;
};
/// Throws Error for more than 200 characters and for what is no letter, comma, '...' or '->'.
EinsumEquation parse_equation(std::string_view);

}  // namespace numemu::net
