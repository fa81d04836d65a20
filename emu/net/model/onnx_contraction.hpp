// Products of two ONNX values whose axes have labels, as Einsum writes them.
#pragma once
#include <vector>

#include "emu/net/model/onnx_importer.hpp"

namespace numemu::net {

/// A value in ONNX order with a label for each axis.
struct Labelled {
  OnnxValue value;
  std::vector<int> labels;  ///< no two alike
};

/// The sum of a's elements over the labels that `out` lacks, its axes in the order of `out`.
Labelled rearranged(OnnxImporter&, const OnnxNode&, Labelled a, const std::vector<int>& out);

/// The sum of the products of elements with equal labels over those that `out` lacks: a linear
/// layer where one operand is constant and shares no other label, else a stacked product. Extents
/// of 1 are broadcast. `input` is the node's input that b is. Throws Error for extents that do not
/// fit and for a sum over the batch.
Labelled contracted(OnnxImporter&, const OnnxNode&, Labelled a, Labelled b,
                    const std::vector<int>& out, std::size_t input = 1);

}  // namespace numemu::net
