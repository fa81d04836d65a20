#include "emu/net/data/samples.hpp"

#include <string>

#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"

namespace numemu::net {
namespace {

// A draw in [0, count): the high word of 32 random bits times count (bias below count / 2^32).
std::int64_t draw_below(const AugmentDraw& draw, const char* use, std::int64_t id,
                        std::int64_t count) {
  if (count == 1) return 0;
  std::string word = "data/augment/" + std::to_string(draw.epoch) + "/" + use;
  if (draw.copy > 0) word += "/" + std::to_string(draw.copy);
  const RandomSource source{draw.seed, Stream::augment, tensor_word(word), 0};
  const std::uint64_t bits = source.bits(static_cast<std::uint64_t>(id), 32);
  return static_cast<std::int64_t>((bits * static_cast<std::uint64_t>(count)) >> 32);
}

void require_pixels(const char* key, std::int64_t pixels, std::int64_t extent) {
  if (pixels >= 0 && pixels < extent) return;
  throw Error("augmentation: " + std::string(key) + ": expected 0 to " +
              std::to_string(extent - 1) + " pixels, found " + std::to_string(pixels));
}

}  // namespace

std::int64_t ImageView::source(std::int64_t y, std::int64_t x) const {
  y -= down;
  x -= right;
  if (y < 0 || y >= height || x < 0 || x >= width) return -1;
  if (mirrored) x = width - 1 - x;
  // The window's pixel below the centre of (y, x).
  y = top + (2 * y + 1) * window_height / (2 * height);
  x = left + (2 * x + 1) * window_width / (2 * width);
  return y * width + x;
}

void check(const Augmentation& what, std::int64_t height, std::int64_t width) {
  const std::int64_t extent = height < width ? height : width;
  require_pixels("shift", what.shift, extent);
  require_pixels("crop", what.crop, extent);
}

ImageView draw_view(const AugmentDraw& draw, std::int64_t id, std::int64_t height,
                    std::int64_t width) {
  const Augmentation& what = draw.what;
  check(what, height, width);
  ImageView view{.height = height, .width = width};
  view.down = draw_below(draw, "down", id, 2 * what.shift + 1) - what.shift;
  view.right = draw_below(draw, "right", id, 2 * what.shift + 1) - what.shift;
  view.mirrored = what.flip && draw_below(draw, "flip", id, 2) == 1;
  const std::int64_t smaller = draw_below(draw, "crop", id, what.crop + 1);
  view.window_height = height - smaller;
  view.window_width = width - smaller;
  view.top = draw_below(draw, "top", id, smaller + 1);
  view.left = draw_below(draw, "left", id, smaller + 1);
  return view;
}

}  // namespace numemu::net
