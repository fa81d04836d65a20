// Normalisation by a table of 256 values per channel, plain or through an augmented view.
#include "emu/net/data/images.hpp"

#include <fmt/format.h>

#include <utility>

#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kLevels = 256;

void check(const std::string& name, std::string_view split, const Images& images,
           std::int64_t least) {
  if (images.count < least) {
    throw Error(fmt::format("{}: expected at least {} {} images, found {}", name, least, split,
                            images.count));
  }
  const std::int64_t pixels =
      element_count({images.count, images.height, images.width, images.channels});
  if (std::cmp_not_equal(images.pixels.size(), pixels) ||
      std::cmp_not_equal(images.labels.size(), images.count)) {
    throw Error(fmt::format("{}: expected {} {} pixels and {} labels, found {} and {}", name,
                            pixels, split, images.count, images.pixels.size(),
                            images.labels.size()));
  }
}

}  // namespace

std::vector<float> normalisation_table(const std::vector<double>& mean,
                                       const std::vector<double>& deviation) {
  std::vector<float> table;
  for (std::size_t channel = 0; channel < mean.size(); ++channel) {
    for (std::int64_t level = 0; level < kLevels; ++level) {
      const double x = (static_cast<double>(level) / 255.0 - mean[channel]) / deviation[channel];
      table.push_back(static_cast<float>(x));
    }
  }
  return table;
}

void write_image(const std::uint8_t* image, const Shape& shape, const std::vector<float>& table,
                 const AugmentDraw* draw, std::int64_t id, float* x) {
  const std::int64_t height = shape[0], width = shape[1], channels = shape[2];
  if (draw == nullptr) {
    for (std::int64_t p = 0, channel = 0; p < height * width * channels; ++p) {
      *x++ = table[channel * kLevels + image[p]];
      if (++channel == channels) channel = 0;
    }
    return;
  }
  const ImageView view = draw_view(*draw, id, height, width);
  for (std::int64_t row = 0; row < height; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t from = view.source(row, column);
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::uint8_t byte = from < 0 ? std::uint8_t{0} : image[from * channels + c];
        *x++ = table[c * kLevels + byte];
      }
    }
  }
}

ImageSamples::ImageSamples(const std::string& name, std::int64_t classes, Images train, Images test,
                           const std::vector<double>& mean, const std::vector<double>& deviation)
    : train_(std::move(train)), test_(std::move(test)) {
  check(name, "training", train_, kValidation + kCalibration);
  check(name, "test", test_, 1);
  if (test_.height != train_.height || test_.width != train_.width ||
      test_.channels != train_.channels) {
    throw Error(name + ": expected training and test images of the same extents");
  }
  if (std::cmp_not_equal(mean.size(), train_.channels) || deviation.size() != mean.size()) {
    throw Error(
        fmt::format("{}: expected mean and deviation of {} channels", name, train_.channels));
  }
  table_ = normalisation_table(mean, deviation);
  std::string digests;
  for (const std::vector<std::uint8_t>* bytes :
       {&train_.pixels, &train_.labels, &test_.pixels, &test_.labels}) {
    digests += sha256_hex({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  }
  facts_.kind = DataKind::images;
  facts_.noun = "images";
  facts_.classes = classes;
  facts_.input_shape = {train_.height, train_.width, train_.channels};
  facts_.sizes = {train_.count - kValidation, kValidation, kCalibration, test_.count};
  facts_.digest = sha256_hex(digests).substr(0, 16);
}

void ImageSamples::read(Part part, std::int64_t id, const AugmentDraw* draw, float* x,
                        TargetSpan targets) const {
  const Images& images = part == Part::test ? test_ : train_;
  if (part == Part::validation) id += facts_.sizes.train;
  *targets.classes = images.labels[id];
  const std::int64_t size = element_count(facts_.input_shape);
  write_image(images.pixels.data() + id * size, facts_.input_shape, table_, draw, id, x);
}

}  // namespace numemu::net
