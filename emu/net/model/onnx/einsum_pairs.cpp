// Cold: a negligible share of any run (docs/build.md).
#include "emu/net/model/onnx/einsum_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/wire.hpp"
#include "emu/net/model/onnx/writer.hpp"

namespace numemu::net {
namespace {

// Of ModelProto, GraphProto and NodeProto.
constexpr std::uint32_t kGraphOfModel = 7, kNodeOfGraph = 1, kNameOfNode = 3;

struct Terms {
  std::vector<std::string> operands;
  std::string result;
};

/// Nothing where a label is no letter, or stands twice in a term.
std::optional<Terms> terms_of(std::string text) {
  std::erase(text, ' ');
  Terms terms;
  const std::size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (std::size_t comma; (comma = left.find(',')) != left.npos; left.erase(0, comma + 1))
    terms.operands.push_back(left.substr(0, comma));
  terms.operands.push_back(left);
  std::map<char, int> uses;
  for (const std::string& term : terms.operands) {
    for (const char c : term) {
      if ((c | 32) < 'a' || (c | 32) > 'z' || std::ranges::count(term, c) > 1) return std::nullopt;
      ++uses[c];
    }
  }
  if (arrow != text.npos) {
    terms.result = text.substr(arrow + 2);
  } else {
    for (const auto& [c, count] : uses)
      if (count == 1) terms.result += c;
  }
  return terms;
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
    const auto terms = terms_of(std::string(node.find("equation")->text));
    if (!terms || terms->operands.size() != node.inputs.size() ||
        (constants_.contains(node.inputs[0]) && constants_.contains(node.inputs[1])))
      return false;
    std::string left(node.inputs[0]), labels = terms->operands[0];
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const bool last = i + 1 == node.inputs.size();
      const std::string& right = terms->operands[i];
      // What a later operand has, in its order, then what the result has.
      std::string next = last ? terms->result : "";
      for (std::size_t k = i + 1; !last && k <= node.inputs.size(); ++k) {
        for (const char c : k < node.inputs.size() ? terms->operands[k] : terms->result)
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
  std::string out;
  WireReader fields(model.path, {reinterpret_cast<const char*>(model.bytes.data()),
                                 static_cast<std::size_t>(model.bytes.size())});
  for (WireField field; fields.next(field);) {
    if (field.number != kGraphOfModel) {
      put_field(out, field);
      continue;
    }
    std::string graph;
    std::size_t at = 0;
    WireReader parts = fields.message(field, "the graph");
    for (WireField part; parts.next(part);) {
      OnnxWriter chain;
      const bool node = part.number == kNodeOfGraph;
      if (node && is_long(model.graph.nodes.at(at)) && pairs.write(model.graph.nodes[at], chain)) {
        graph += chain.body();
      } else {
        put_field(graph, part);
      }
      at += node;
    }
    put_bytes(out, kGraphOfModel, graph);
  }
  Bytes bytes(static_cast<std::int64_t>(out.size()));
  std::ranges::copy(out, reinterpret_cast<char*>(bytes.data()));
  return parse_onnx(model.path, std::move(bytes), true);
}

std::string with_own_names(const std::string& path, std::string model) {
  std::set<std::string, std::less<>> names;
  bool twice = false;
  std::string out;
  WireReader fields(path, model);
  for (WireField field; fields.next(field);) {
    if (field.number != kGraphOfModel) {
      put_field(out, field);
      continue;
    }
    std::string graph;
    WireReader parts = fields.message(field, "the graph");
    for (WireField part; parts.next(part);) {
      if (part.number != kNodeOfGraph) {
        put_field(graph, part);
        continue;
      }
      std::string node;
      WireReader members = parts.message(part, "a node");
      for (WireField member; members.next(member);) {
        if (member.number != kNameOfNode || member.bytes.empty()) {
          put_field(node, member);
          continue;
        }
        std::string name(member.bytes);
        while (!names.insert(name).second) {
          name += "_";
          twice = true;
        }
        put_bytes(node, kNameOfNode, name);
      }
      put_bytes(graph, kNodeOfGraph, node);
    }
    put_bytes(out, kGraphOfModel, graph);
  }
  return twice ? out : model;
}

}  // namespace numemu::net
