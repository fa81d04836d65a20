#include "emu/net/model/onnx/operator_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

/// An attribute that became an input of the operator in a version of the operator set.
struct MovedAttribute {
  std::int64_t since;
  std::string_view op, attribute;
  std::size_t input;
};
constexpr MovedAttribute kMoved[] = {
    {10, "Slice", "starts", 1},
    {10, "Slice", "ends", 2},
    {10, "Slice", "axes", 3},
    {10, "TopK", "k", 1},
    {11, "Clip", "min", 1},
    {11, "Clip", "max", 2},
    {11, "Pad", "pads", 1},
    {11, "Pad", "value", 2},
    {13, "ReduceSum", "axes", 1},
    {13, "Split", "split", 1},
    {13, "Squeeze", "axes", 1},
    {13, "Unsqueeze", "axes", 1},
    {18, "ReduceL1", "axes", 1},
    {18, "ReduceL2", "axes", 1},
    {18, "ReduceLogSum", "axes", 1},
    {18, "ReduceLogSumExp", "axes", 1},
    {18, "ReduceMax", "axes", 1},
    {18, "ReduceMean", "axes", 1},
    {18, "ReduceMin", "axes", 1},
    {18, "ReduceProd", "axes", 1},
    {18, "ReduceSumSquare", "axes", 1},
};

/// Attributes without a meaning since then.
constexpr MovedAttribute kGone[] = {{12, "Dropout", "ratio", 0},
                                    {9, "BatchNormalization", "spatial", 0}};

/// Operators whose meaning changed, so that no node of a later set says the same.
constexpr std::pair<std::int64_t, std::string_view> kChanged[] = {
    {9, "Scan"}, {11, "Scatter"}, {21, "GroupNormalization"}};

class Raised {
 public:
  Raised(const NodeToRaise& given, std::int64_t from, std::int64_t to,
         const std::function<std::string(std::string)>& name, OnnxWriter& out)
      : given_(given), node_(given.node), from_(from), to_(to), name_(name), out_(out) {
    inputs_ = given.inputs;
    dropped_ = given.dropped;
  }

  void write() {
    if (!node_.domain.empty() || from_ >= to_) return put();
    if (crosses(7) && (node_.find("broadcast") != nullptr || node_.op_type == "PRelu"))
      fail("its operands broadcast in another way");
    for (const auto& [since, op] : kChanged)
      if (crosses(since) && node_.op_type == op) fail("its meaning changed");
    for (const MovedAttribute& each : kMoved)
      if (crosses(each.since) && node_.op_type == each.op) move(each);
    for (const MovedAttribute& each : kGone)
      if (crosses(each.since) && node_.op_type == each.op) dropped_.emplace(each.attribute);
    if (crosses(13) &&
        (node_.op_type == "Softmax" || node_.op_type == "LogSoftmax" || node_.op_type == "Hardmax"))
      last_axis();
    if ((crosses(10) && node_.op_type == "Upsample") || (crosses(11) && node_.op_type == "Resize"))
      resize();
    // Before set 16 places of regions were not half a pixel off.
    if (crosses(16) && node_.op_type == "RoiAlign")
      added_.push_back({"coordinate_transformation_mode", std::string("output_half_pixel")});
    if (crosses(20) && node_.op_type == "GridSample") grid_sample();
    if (crosses(20) && node_.op_type == "DFT") dft();
    if (crosses(18) && node_.op_type == "Split" && (inputs_.size() < 2 || inputs_[1].empty()))
      added_.push_back({"num_outputs", static_cast<std::int64_t>(node_.outputs.size())});
    put();
  }

 private:
  bool crosses(std::int64_t since) const { return from_ < since && since <= to_; }

  [[noreturn]] void fail(const char* why) const {
    throw Error(
        fmt::format("node '{}' ({}): cannot be raised from operator set {} to {}, which the "
                    "quantized types need: {}",
                    node_.name, node_.op_type, from_, to_, why));
  }

  void move(const MovedAttribute& moved) {
    const OnnxAttribute* const attribute = node_.find(moved.attribute);
    if (attribute == nullptr) return;
    dropped_.emplace(moved.attribute);
    if (inputs_.size() <= moved.input) inputs_.resize(moved.input + 1);
    const std::string name = name_(fmt::format("{}.{}", node_.outputs.at(0), moved.attribute));
    inputs_[moved.input] = name;
    if (attribute->type == OnnxAttributeType::number) {
      out_.constant(name, {}, std::vector<float>{attribute->number});
    } else {
      out_.constant(name, attribute->type == OnnxAttributeType::integer
                              ? std::vector<std::int64_t>{attribute->integer}
                              : attribute->integers);
    }
  }

  /// Before set 13 all axes from `axis` on were one.
  void last_axis() {
    const OnnxAttribute* const given = node_.find("axis");
    const auto rank = static_cast<std::int64_t>(given_.rank);
    const std::int64_t axis = given == nullptr ? 1 : given->integer;
    if (axis != -1 && (rank == 0 || (axis < 0 ? axis + rank : axis) != rank - 1))
      fail("it takes several axes as one");
    dropped_.emplace("axis");
    added_.push_back({"axis", std::int64_t{-1}});
  }

  /// Upsample, and Resize before set 11: places are those of the result over the scale, the nearest
  /// one below.
  void resize() {
    op_ = "Resize";
    if (const OnnxAttribute* const scales = node_.find("scales")) {  // set 7
      dropped_.emplace("scales");
      const std::string name = name_(fmt::format("{}.scales", node_.outputs.at(0)));
      out_.constant(name, {std::ssize(scales->numbers)}, scales->numbers);
      inputs_.push_back(name);
    }
    if (inputs_.size() != 2) fail("it has no scales");
    inputs_.insert(inputs_.begin() + 1, "");  // the region, which no such mode reads
    added_.push_back({"coordinate_transformation_mode", std::string("asymmetric")});
    added_.push_back({"nearest_mode", std::string("floor")});
  }

  /// Set 20 calls two of the modes otherwise.
  void grid_sample() {
    const OnnxAttribute* const mode = node_.find("mode");
    if (mode == nullptr || mode->text == "nearest") return;
    dropped_.emplace("mode");
    added_.push_back({"mode", std::string(mode->text == "bicubic" ? "cubic" : "linear")});
  }

  /// The axis became an input, whose default is another.
  void dft() {
    const OnnxAttribute* const given = node_.find("axis");
    const std::int64_t axis = given == nullptr ? 1 : given->integer;
    dropped_.emplace("axis");
    inputs_.resize(3);
    inputs_[2] = name_(fmt::format("{}.axis", node_.outputs.at(0)));
    out_.constant(inputs_[2], OnnxType::int64, {},
                  {reinterpret_cast<const char*>(&axis), sizeof axis});
  }

  /// An AttributeProto whose graph has its nodes in the new set.
  std::string raised(const WireReader& message, const OnnxGraph& graph) const {
    std::size_t at = 0;
    const auto write = [&](const WireField& field, std::string& body) {
      const OnnxNode& node = graph.nodes.at(at++);
      OnnxWriter written;
      raise_node({given_.file,
                  node,
                  message.message(field, "a node"),
                  {node.inputs.begin(), node.inputs.end()},
                  {node.outputs.begin(), node.outputs.end()}},
                 from_, to_, name_, written);
      body += written.body();
    };
    return with_fields(
        message, attribute_field::kGraph, [&](const WireField& field, std::string& bytes) {
          put_bytes(bytes, field.number,
                    with_fields(message.message(field, "a graph"), graph_field::kNode, write));
        });
  }

  void put() {
    std::string bytes;
    for (const std::string& input : inputs_) put_bytes(bytes, node_field::kInput, input);
    for (const std::string& output : given_.outputs) put_bytes(bytes, node_field::kOutput, output);
    WireReader message = given_.message;
    std::size_t at = 0;
    for (WireField field; message.next(field);) {
      if (field.number == node_field::kInput || field.number == node_field::kOutput) continue;
      if (field.number == node_field::kAttribute) {
        const OnnxAttribute& attribute = node_.attributes[at++];
        if (dropped_.contains(attribute.name)) continue;
        if (attribute.type == OnnxAttributeType::graph && from_ < to_) {
          put_bytes(bytes, node_field::kAttribute,
                    raised(message.message(field, "an attribute"),
                           read_subgraph(given_.file, node_, attribute.name)));
          continue;
        }
      }
      if (field.number == node_field::kOperator && !op_.empty()) {
        put_bytes(bytes, node_field::kOperator, op_);
        continue;
      }
      put_field(bytes, field);
    }
    for (const OnnxNodeAttribute& each : added_)
      put_bytes(bytes, node_field::kAttribute, OnnxWriter::attribute(each));
    out_.node(bytes);
  }

  const NodeToRaise& given_;
  const OnnxNode& node_;
  std::int64_t from_, to_;
  const std::function<std::string(std::string)>& name_;
  OnnxWriter& out_;
  std::vector<std::string> inputs_;
  std::set<std::string, std::less<>> dropped_;
  std::vector<OnnxNodeAttribute> added_;
  std::string_view op_;  // the operator's name in the new set; "": as it was
};

}  // namespace

void raise_node(const NodeToRaise& given, std::int64_t from, std::int64_t to,
                const std::function<std::string(std::string)>& name, OnnxWriter& out) {
  Raised(given, from, to, name, out).write();
}

}  // namespace numemu::net
