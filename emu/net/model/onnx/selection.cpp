// Operators whose results have as many elements as the values decide: on constants alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "emu/net/model/onnx/constant.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

using Constants = std::vector<OnnxConstant>;
using Inputs = std::vector<ConstantRef>;
using Places = Ints;

/// The positions of the elements that are not zero: [axes, found].
Constants nonzero(const OnnxNode&, const Inputs& inputs, OnnxFolder& folder) {
  const OnnxConstant& data = required(inputs, 0);
  const Shape strides = strides_of(data.dims);
  const auto live = [&](const Folded& e) {
    return data.integer ? e.whole.value != 0 : e.real != 0;
  };
  OnnxConstant out{{std::ssize(data.dims), std::ranges::count_if(data.elements, live)}, true, {}};
  folder.count(element_count(out.dims));
  out.elements.reserve(static_cast<std::size_t>(element_count(out.dims)));
  for (std::size_t axis = 0; axis < data.dims.size(); ++axis) {
    for (std::size_t i = 0; i < data.elements.size(); ++i) {
      if (live(data.elements[i]))
        out.elements.push_back(
            {0, {static_cast<std::int64_t>(i) / strides[axis] % data.dims[axis]}});
    }
  }
  return {std::move(out)};
}

OnnxConstant vector_of(const Places& values) {
  OnnxConstant out{{std::ssize(values)}, true, {}, OnnxType::int64};
  for (const std::int64_t v : values) out.elements.push_back({0, {v}});
  return out;
}

/// The different elements, or slices of an axis, in ascending order or that of their first places;
/// those places, which of them each element is, and how often each occurs.
Constants unique(const OnnxNode& node, const Inputs& inputs, OnnxFolder& folder) {
  const OnnxConstant& data = required(inputs, 0);
  folder.count(4 * data.size());
  const bool whole = node.find("axis") == nullptr;
  const std::int64_t axis = whole ? 0 : axis_in(node.integer_or("axis", 0), data.dims.size());
  const auto at_axis = static_cast<std::size_t>(axis);
  const std::int64_t slices = whole ? data.size() : data.dims[at_axis];
  const std::int64_t inner = whole ? 1 : strides_of(data.dims)[at_axis],
                     outer = data.size() == 0 ? 0 : data.size() / (slices * inner);
  const auto element = [&](std::int64_t slice, std::int64_t k) -> const Folded& {
    return data
        .elements[static_cast<std::size_t>((k / inner * slices + slice) * inner + k % inner)];
  };
  const auto is_less = [&](const Folded& a, const Folded& b) {
    if (data.integer) return a.whole.value < b.whole.value;
    return a.real < b.real || (!std::isnan(a.real) && std::isnan(b.real));  // NaN is last
  };
  const auto order = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t k = 0; k < outer * inner; ++k) {
      if (is_less(element(a, k), element(b, k))) return true;
      if (is_less(element(b, k), element(a, k))) return false;
    }
    return false;
  };
  std::map<std::int64_t, Places, decltype(order)> groups(order);  // by a slice of theirs
  for (std::int64_t s = 0; s < slices; ++s) groups[s].push_back(s);
  std::vector<Places> found;
  for (auto& [slice, places] : groups) found.push_back(std::move(places));
  if (node.integer_or("sorted", 1) == 0)
    std::ranges::sort(found, {}, [](const Places& places) { return places[0]; });
  Places first, which(static_cast<std::size_t>(slices)), counts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    first.push_back(found[i][0]);
    counts.push_back(std::ssize(found[i]));
    for (const std::int64_t s : found[i])
      which[static_cast<std::size_t>(s)] = static_cast<std::int64_t>(i);
  }
  Shape dims = whole ? Shape{0} : data.dims;
  dims[at_axis] = std::ssize(first);
  OnnxConstant y{dims, data.integer, {}, data.type};
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t s : first) {
      const auto from = data.elements.begin() + (o * slices + s) * inner;
      y.elements.insert(y.elements.end(), from, from + inner);
    }
  }
  return {std::move(y), vector_of(first), vector_of(which), vector_of(counts)};
}

struct Box {
  double top = 0, left = 0, bottom = 0, right = 0;
  double area() const { return (bottom - top) * (right - left); }
};

/// Corners in any order, or with `centred` the centre and the size.
Box box_of(const float* x, bool centred) {
  if (centred) return {x[1] - x[3] / 2.0, x[0] - x[2] / 2.0, x[1] + x[3] / 2.0, x[0] + x[2] / 2.0};
  return {std::min(x[0], x[2]), std::min(x[1], x[3]), std::max(x[0], x[2]), std::max(x[1], x[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
               width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const double common = height * width;
  return common / (a.area() + b.area() - common);
}

/// Of each image and class the boxes by falling score that overlap none before by more than a
/// share of their union: [found, (image, class, box)].
Constants suppression(const OnnxNode& node, const Inputs& inputs, OnnxFolder& folder) {
  const Tensor boxes = required(inputs, 0).tensor(), scores = required(inputs, 1).tensor();
  if (boxes.shape.size() != 3 || boxes.dim(2) != 4 || scores.shape.size() != 3 ||
      scores.dim(0) != boxes.dim(0) || scores.dim(2) != boxes.dim(1))
    throw Error(
        fmt::format("expected boxes [n, count, 4] and scores [n, classes, count], found {} "
                    "and {}",
                    to_string(boxes.shape), to_string(scores.shape)));
  const auto number = [&](std::size_t index, float otherwise) {
    if (index >= inputs.size() || !inputs[index]) return otherwise;
    const Tensor given = inputs[index]->tensor();
    if (given.size() != 1) throw Error(fmt::format("expected one number as input {}", index));
    return given.data[0];
  };
  const float most = number(2, 0), share = number(3, 0);
  const bool bounded = inputs.size() > 4 && inputs[4];
  const float least = number(4, 0);
  const bool centred = node.integer_or("center_point_box", 0) != 0;
  const std::int64_t count = boxes.dim(1);
  folder.count(3 * scores.size());
  OnnxConstant out{{0, 3}, true, {}, OnnxType::int64};
  Places order(static_cast<std::size_t>(count));
  for (std::int64_t line = 0; line < scores.dim(0) * scores.dim(1); ++line) {
    const float* const score = scores.data.data() + line * count;
    const std::int64_t image = line / scores.dim(1);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](std::int64_t b) {
      return std::isnan(score[b]) ? -HUGE_VALF : score[b];
    });
    std::vector<Box> kept;
    for (const std::int64_t b : order) {
      if (static_cast<float>(kept.size()) >= most) break;
      if (bounded && !(score[b] > least)) continue;
      const Box box = box_of(boxes.data.data() + (image * count + b) * 4, centred);
      if (std::ranges::any_of(kept, [&](const Box& k) { return overlap(k, box) > share; }))
        continue;
      kept.push_back(box);
      for (const std::int64_t v : {image, line % scores.dim(1), b})
        out.elements.push_back({0, {v}});
      ++out.dims[0];
    }
  }
  return {std::move(out)};
}

struct Selection {
  std::string_view op;
  Constants (*fold)(const OnnxNode&, const Inputs&, OnnxFolder&);
};
constexpr Selection kSelections[] = {
    {"NonMaxSuppression", suppression}, {"NonZero", nonzero}, {"Unique", unique}};

}  // namespace

bool is_selection(std::string_view op) {
  return std::ranges::find(kSelections, op, &Selection::op) != std::end(kSelections);
}

std::optional<Constants> fold_selection(const OnnxNode& node, const Inputs& inputs,
                                        OnnxFolder& folder) {
  const auto* const found = std::ranges::find(kSelections, node.op_type, &Selection::op);
  if (found == std::end(kSelections)) return std::nullopt;
  return found->fold(node, inputs, folder);
}

}  // namespace numemu::net
