// Elementwise nodes that one node of a file becomes: arithmetic of values of one layout.
#pragma once
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/net/model/onnx/importer.hpp"
#include "emu/net/ops/binary.hpp"
#include "emu/net/ops/lookup.hpp"
#include "emu/net/ops/pointwise.hpp"
#include "emu/net/ops/reduce.hpp"

namespace numemu::net {

class OnnxArithmetic {
 public:
  /// `image` is the layout of every result.
  OnnxArithmetic(OnnxImporter& importer, const OnnxNode& node, bool image = false)
      : importer_(importer), node_(node), image_(image) {}

  /// A row of the table of two inputs; whole numbers stay whole, comparisons are.
  OnnxValue binary(std::string_view kind, const OnnxValue& a, const OnnxValue& b) const {
    return importer_.add<Binary>(node_, {a, b}, image_, kind);
  }
  OnnxValue binary(std::string_view kind, const OnnxValue& a, float b) const {
    return binary(kind, a, importer_.number(b));
  }
  OnnxValue unary(std::string_view kind, const OnnxValue& a) const {
    return importer_.add<Pointwise>(node_, {a}, image_, kind);
  }
  OnnxValue clip(const OnnxValue& a, float low, float high) const {
    return importer_.add<Pointwise>(node_, {a}, image_, "clip", PointwiseNumbers{low, high});
  }
  OnnxValue where(const OnnxValue& condition, const OnnxValue& a, const OnnxValue& b) const {
    return importer_.add<Where>(node_, {condition, a, b}, image_);
  }
  OnnxValue where(const OnnxValue& condition, float a, const OnnxValue& b) const {
    return where(condition, importer_.number(a), b);
  }
  /// Over stored axes.
  OnnxValue reduce(std::string_view kind, const OnnxValue& a, std::vector<std::int64_t> axes,
                   bool keep = true) const {
    return importer_.add<Reduce>(node_, {a}, image_, kind, std::move(axes), keep);
  }
  /// Rows or elements at computed places.
  OnnxValue chosen(const OnnxValue& data, const OnnxValue& places,
                   const IndexedOptions& options) const {
    return importer_.add<IndexedGather>(node_, {data, places}, false, options);
  }
  /// A node of whole numbers.
  OnnxValue numbers(Shape dims, const std::vector<std::int64_t>& values) const {
    OnnxValue out;
    OnnxConstant constant{std::move(dims), true, {}};
    importer_.hold(6 * std::ssize(values));
    constant.elements.reserve(values.size());
    for (const std::int64_t v : values) constant.elements.push_back({0, {v}});
    out.constant = std::make_shared<OnnxConstant>(std::move(constant));
    return importer_.as_graph(out, "");
  }

 private:
  OnnxImporter& importer_;
  const OnnxNode& node_;
  bool image_;
};

/// All axes of a value as stored; throws Error naming `what` where one is the batch.
inline std::vector<std::int64_t> every_axis(const OnnxValue& value, std::string_view what) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < value.rank(); ++i) {
    axes.push_back(static_cast<std::int64_t>(i));
    refuse_batch(value, axes.back(), what);
  }
  return axes;
}

}  // namespace numemu::net
