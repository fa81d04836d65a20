#include "emu/net/ops/broadcast.hpp"

#include "formats/error.hpp"

namespace numemu::net {
namespace {

// The shape all inputs are repeated to.
Shape common_shape(std::string_view what, Shapes inputs) {
  std::size_t rank = 0;
  for (const Shape& shape : inputs) rank = std::max(rank, shape.size());
  Shape common(rank, 1);
  for (const Shape& shape : inputs) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& extent = common[rank - shape.size() + i];
      if (shape[i] == 1 || shape[i] == extent) continue;
      if (extent == 1) {
        extent = shape[i];
        continue;
      }
      std::string list;
      for (const Shape& s : inputs) list += (list.empty() ? "" : ", ") + to_string(s);
      throw Error(
          std::string(what) +
          ": expected shapes that broadcast (equal extents or 1 from the last axis on), got " +
          list);
    }
  }
  return common;
}

}  // namespace

Broadcast::Broadcast(std::string_view what, Shapes inputs) {
  if (inputs.empty() || inputs.size() > kInputs) {
    throw Error(std::string(what) + ": expected 1 to " + std::to_string(kInputs) + " inputs, got " +
                std::to_string(inputs.size()));
  }
  shape_ = common_shape(what, inputs);
  std::vector<Axis> axes;  // outermost last
  Offsets sizes;           // of what is inside the current axis
  sizes.fill(1);
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] == 1) continue;
    Axis axis{shape_[i], {}};
    bool merges = !axes.empty();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::size_t missing = shape_.size() - inputs[k].size();
      if (i >= missing && inputs[k][i - missing] != 1) {
        axis.strides[k] = sizes[k];
        sizes[k] *= shape_[i];
      }
      merges = merges && (axes.back().strides[k] == 0) == (axis.strides[k] == 0);
    }
    if (merges) {
      axes.back().extent *= axis.extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) return;
  inner_ = axes.front();
  outer_.assign(axes.rbegin(), axes.rend() - 1);
}

}  // namespace numemu::net
