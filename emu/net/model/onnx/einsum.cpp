#include "emu/net/model/onnx/einsum.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/model/onnx/writer.hpp"
#include "formats/error.hpp"

namespace numemu::net {

EinsumEquation parse_equation(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) throw Error("expected an equation of at most 200 characters");
  EinsumEquation equation{{""}, ""};
  bool has_result = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string& term = has_result ? equation.result : equation.terms.back();
    if (c == ' ') continue;
    if (c == ',' && !has_result) {
      equation.terms.emplace_back();
    } else if (text.substr(i, 2) == "->" && !has_result) {
      has_result = true;
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
  if (has_result) return equation;
  std::map<char, int> uses;
  for (const std::string& term : equation.terms)
    for (const char c : term) ++uses[c];
  for (const auto& [label, count] : uses)  // '.' comes before letters
    if (label == '.' || count == 1) equation.result += label;
  return equation;
}

namespace {

/// Nothing where the importer has no product for it: an ellipsis, a label twice in a term.
std::optional<EinsumEquation> plain_equation(const OnnxNode& node) {
  try {
    EinsumEquation equation = parse_equation(node.find("equation")->text);
    for (const std::string& term : equation.terms)
      for (const char c : term)
        if (c == '.' || std::ranges::count(term, c) > 1) return std::nullopt;
    return equation;
  } catch (const Error&) {  // the import says what is wrong
    return std::nullopt;
  }
}

bool is_long(const OnnxNode& node) {
  return node.op_type == "Einsum" && node.domain.empty() && node.inputs.size() > 2 &&
         node.outputs.size() == 1 && node.find("equation") != nullptr;
}

class Pairs {
 public:
  explicit Pairs(const OnnxModel& model) {
    for (const OnnxNode& node : model.graph.nodes) {
      names_.insert(node.inputs.begin(), node.inputs.end());
      names_.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const OnnxTensor& tensor : model.graph.initializers) constants_.emplace(tensor.name);
  }

  /// The chain; false where the node stays.
  bool write(const OnnxNode& node, OnnxWriter& to) {
    const std::optional<EinsumEquation> equation = plain_equation(node);
    if (!equation || equation->terms.size() != node.inputs.size() ||
        (constants_.contains(node.inputs[0]) && constants_.contains(node.inputs[1])))
      return false;
    std::string left(node.inputs[0]), labels = equation->terms[0];
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const bool last = i + 1 == node.inputs.size();
      const std::string next = labels_after(labels, equation->terms, i, equation->result);
      const std::string result =
          last ? std::string(node.outputs[0]) : free_name(fmt::format("{}.{}", node.outputs[0], i));
      to.node("Einsum", node.name, {left, std::string(node.inputs[i])}, result,
              {{"equation", fmt::format("{},{}->{}", labels, equation->terms[i], next)}});
      left = result;
      labels = next;
    }
    return true;
  }

 private:
  std::string free_name(std::string wanted) {
    while (!names_.insert(wanted).second) wanted += "_";
    return wanted;
  }

  std::set<std::string, std::less<>> names_, constants_;
};

}  // namespace

OnnxModel with_einsum_pairs(OnnxModel model) {
  if (!model.external.empty() || std::ranges::none_of(model.graph.nodes, is_long)) return model;
  Pairs pairs(model);
  std::size_t at = 0;
  const std::string out =
      with_graph_fields(WireReader(model.path, model.text()), graph_field::kNode,
                        [&](const WireField& field, std::string& graph) {
                          const OnnxNode& node = model.graph.nodes.at(at++);
                          OnnxWriter chain;
                          if (!is_long(node) || !pairs.write(node, chain))
                            return put_field(graph, field);
                          graph += chain.body();
                        });
  return parse_onnx(model.path, out, true);
}

}  // namespace numemu::net
