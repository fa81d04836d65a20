#include "emu/net/model/onnx/einsum_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/einsum_equation.hpp"
#include "emu/net/model/onnx/writer.hpp"
#include "formats/error.hpp"

namespace numemu::net {
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
  explicit Pairs(const OnnxModel& model) : model_(model) {
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
      const std::string& right = equation->terms[i];
      // What a later operand has, in its order, then what the result has.
      std::string next = last ? equation->result : "";
      for (std::size_t k = i + 1; !last && k <= node.inputs.size(); ++k) {
        for (const char c : k < node.inputs.size() ? equation->terms[k] : equation->result)
          if ((labels + right).find(c) != std::string::npos && next.find(c) == std::string::npos)
            next += c;
      }
      const std::string result =
          last ? std::string(node.outputs[0]) : free_name(fmt::format("{}.{}", node.outputs[0], i));
      to.node("Einsum", node.name, {left, std::string(node.inputs[i])}, result,
              {{"equation", fmt::format("{},{}->{}", labels, right, next)}});
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

  const OnnxModel& model_;
  std::set<std::string, std::less<>> names_, constants_;
};

}  // namespace

OnnxModel with_einsum_pairs(OnnxModel model) {
  if (!model.external.empty() || std::ranges::none_of(model.graph.nodes, is_long)) return model;
  Pairs pairs(model);
  std::size_t at = 0;
  const std::string out =
      with_graph_fields(model.path,
                        {reinterpret_cast<const char*>(model.bytes.data()),
                         static_cast<std::size_t>(model.bytes.size())},
                        [&](const WireReader&, const WireField& part, std::string& graph) {
                          if (part.number != kNodeOfGraph) return put_field(graph, part);
                          const OnnxNode& node = model.graph.nodes.at(at++);
                          OnnxWriter chain;
                          if (!is_long(node) || !pairs.write(node, chain))
                            return put_field(graph, part);
                          graph += chain.body();
                        });
  Bytes bytes(static_cast<std::int64_t>(out.size()));
  std::ranges::copy(out, reinterpret_cast<char*>(bytes.data()));
  return parse_onnx(model.path, std::move(bytes), true);
}

std::string with_own_names(const std::string& path, const std::string& model) {
  std::set<std::string, std::less<>> names;
  return with_graph_fields(path, model,
                           [&](const WireReader& parts, const WireField& part, std::string& graph) {
                             if (part.number != kNodeOfGraph) return put_field(graph, part);
                             std::string node;
                             WireReader members = parts.message(part, "a node");
                             for (WireField member; members.next(member);) {
                               if (member.number != kNameOfNode || member.bytes.empty()) {
                                 put_field(node, member);
                                 continue;
                               }
                               std::string name(member.bytes);
                               while (!names.insert(name).second) name += "_";
                               put_bytes(node, kNameOfNode, name);
                             }
                             put_bytes(graph, kNodeOfGraph, node);
                           });
}

}  // namespace numemu::net
