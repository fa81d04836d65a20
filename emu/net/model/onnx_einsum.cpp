// ONNX's Einsum, and the products that linear layers and stacked matrices do not cover.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "emu/net/model/onnx_contraction.hpp"
#include "emu/net/ops/binary.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Values = std::vector<OnnxValue>;
using Labels = std::vector<int>;

/// Axes of the ellipsis, counted from its end: -1 is the last one.
Labels ellipsis(std::size_t count) {
  Labels out;
  for (std::size_t i = count; i > 0; --i) out.push_back(-static_cast<int>(i));
  return out;
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation parse(std::string_view text) {
  Equation equation{{""}, "", false};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& term = equation.has_result ? equation.result : equation.terms.back();
    if (c == ' ') continue;
    if (c == ',' && !equation.has_result) {
      equation.terms.emplace_back();
    } else if (text.substr(i, 2) == "->" && !equation.has_result) {
      equation.has_result = true;
      ++i;
    } else if (text.substr(i, 3) == "..." && term.find('.') == std::string::npos) {
      term += '.';
      i += 2;
    } else if ((c | 32) >= 'a' && (c | 32) <= 'z') {
      term += c;
    } else {
      throw Error(fmt::format("expected letters, commas, '...' and '->', found '{}'",
                              printable(text.substr(i, 1))));
    }
  }
  return equation;
}

Labels labels_of(const std::string& term, std::size_t ellipsis_axes) {
  Labels labels;
  for (const char c : term) {
    if (c == '.') {
      const Labels axes = ellipsis(ellipsis_axes);
      labels.insert(labels.end(), axes.begin(), axes.end());
    } else if (std::ranges::find(labels, c) != labels.end()) {
      throw Error(fmt::format("'{}' twice in '{}': diagonals are not supported", c, term));
    } else {
      labels.push_back(c);
    }
  }
  return labels;
}

Values einsum(OnnxImporter& importer, const OnnxNode& node) {
  constexpr std::size_t kLongest = 200;
  const std::string_view text = text_or(node, "equation", "");
  if (text.size() > kLongest) throw Error("expected an equation of at most 200 characters");
  const Equation equation = parse(text);
  if (equation.terms.size() != node.inputs.size() || node.inputs.empty())
    throw Error(fmt::format("expected as many terms of the equation as inputs, {}, found {}",
                            node.inputs.size(), equation.terms.size()));
  std::vector<Labelled> operands;
  std::map<int, int> uses;
  std::size_t most = 0;  // axes of an ellipsis
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const OnnxValue& value = importer.input(node, i);
    const std::string& term = equation.terms[i];
    const bool open = term.find('.') != std::string::npos;
    const std::size_t named = term.size() - (open ? 1 : 0);
    if (value.rank() < named || (!open && value.rank() != named))
      throw Error(
          fmt::format("expected input {} to have the axes '{}', found {}", i, term, value.rank()));
    most = std::max(most, value.rank() - named);
    operands.push_back({value, labels_of(term, value.rank() - named)});
    for (const int label : operands.back().labels) ++uses[label];
  }
  Labels out;
  if (equation.has_result) {
    out = labels_of(equation.result, most);
  } else {  // what occurs once, in the order of letters
    out = ellipsis(most);
    for (const auto& [label, count] : uses) {
      if (label > 0 && count == 1) out.push_back(label);
    }
  }
  for (const int label : out) {
    if (!uses.contains(label)) throw Error("expected labels of the result among the inputs'");
  }
  Labelled y = operands[0];
  if (operands.size() == 1) {
    y.value = importer.to_plain(importer.as_graph(y.value, ""));
    return {rearranged(importer, node, y, out).value};
  }
  for (std::size_t i = 1; i < operands.size(); ++i) {
    // What the result or a later operand has.
    Labels next = out;
    for (std::size_t k = i + 1; i + 1 < operands.size() && k <= operands.size(); ++k) {
      next = k == i + 1 ? Labels() : next;
      const Labels& wanted = k < operands.size() ? operands[k].labels : out;
      for (const int label : wanted) {
        const bool here = std::ranges::find(y.labels, label) != y.labels.end() ||
                          std::ranges::find(operands[i].labels, label) != operands[i].labels.end();
        if (here && std::ranges::find(next, label) == next.end()) next.push_back(label);
      }
    }
    y = contracted(importer, node, y, operands[i], next, i);
  }
  return {y.value};
}

}  // namespace

const OnnxHandlers& onnx_einsum_handlers() {
  static const OnnxHandlers kHandlers = {{"Einsum", einsum}};
  return kHandlers;
}

}  // namespace numemu::net
