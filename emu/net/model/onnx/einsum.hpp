// The equation of an Einsum, and products of three and more operands as chains of two.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/model/onnx/file.hpp"

namespace numemu::net {

/// The labels of each operand and of the result, a letter each, '.' for an ellipsis. Where the
/// equation has no result: the ellipsis, then what occurs once, in the order of letters.
struct EinsumEquation {
  std::vector<std::string> terms;
  std::string result;
};
/// Throws Error for more than 200 characters and for what is no letter, comma, '...' or '->'.
EinsumEquation parse_equation(std::string_view);

/// The labels that the product of what has the labels `left` and of operand i keeps: those of later
/// operands, in their order, then those of the result; at the last operand the result's.
template <class Labels>
Labels labels_after(const Labels& left, const std::vector<Labels>& terms, std::size_t i,
                    const Labels& result) {
  const auto has = [](const Labels& labels, auto label) {
    return std::ranges::find(labels, label) != labels.end();
  };
  if (i + 1 == terms.size()) return result;
  Labels out;
  for (std::size_t k = i + 1; k <= terms.size(); ++k) {
    for (const auto label : k < terms.size() ? terms[k] : result)
      if ((has(left, label) || has(terms[i], label)) && !has(out, label)) out.push_back(label);
  }
  return out;
}

/// The file with every Einsum of more than two operands as a chain of such of two, as the importer
/// multiplies them: it gives the same nodes with the same names. The products of a chain have one
/// name, which quantized_file() changes. Other Einsums stay: those with an ellipsis or a label
/// twice, those whose first two operands are initializers; so does a file with data beside it.
OnnxModel with_einsum_pairs(OnnxModel);

}  // namespace numemu::net
