// A node of an ONNX file, written anew for a later operator set: attributes that became inputs,
// defaults and names that changed, and the nodes of its subgraphs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "emu/net/model/onnx/file.hpp"
#include "emu/net/model/onnx/wire.hpp"
#include "emu/net/model/onnx/writer.hpp"

namespace numemu::net {

/// What is known of a node beside its record.
struct NodeToRaise {
  const OnnxModel& file;
  const OnnxNode& node;
  WireReader message;                               ///< its NodeProto
  std::vector<std::string> inputs, outputs;         ///< as they are called now
  std::set<std::string, std::less<>> dropped = {};  ///< attributes that go
  std::size_t rank = 0;                             ///< axes of its result; 0: not known
};

/// Writes the node, and the constants that it needs under names from `name`, for operator set `to`
/// in place of `from` (onnx/docs/Changelog.md). Throws Error naming a node that no rewriting of its
/// own gives the same meaning.
void raise_node(const NodeToRaise&, std::int64_t from, std::int64_t to,
                const std::function<std::string(std::string)>& name, OnnxWriter& out);

}  // namespace numemu::net
