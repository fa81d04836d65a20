// The axis of softmax, with negative numbers counted from the end.
#include "emu/net/ops/softmax_lines.hpp"

#include "formats/error.hpp"

namespace numemu::net {

Lines Lines::along(std::string_view what, const Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank || shape[place] == 0) {
    throw Error(std::string(what) + ": expected an input with elements along axis " +
                std::to_string(axis) + ", got " + to_string(shape));
  }
  Lines lines;
  lines.length = shape[place];
  for (std::int64_t i = 0; i < place; ++i) lines.outer *= shape[i];
  for (std::int64_t i = place + 1; i < rank; ++i) lines.inner *= shape[i];
  return lines;
}

}  // namespace numemu::net
