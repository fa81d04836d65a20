#include "emu/net/train/image_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "emu/net/data/dataset.hpp"
#include "emu/net/train/options.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"
#include "formats/random.hpp"
#include "formats/suggest.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kMostPixels = 4096, kMostSmoothing = 1'000'000'000;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 30;  // 2 batch kMostPixels^2 is below 2^63
constexpr double kSumSlack = 1e-9;  // of shares that are written in decimals

struct SizeChange {
  std::string_view name;
};
constexpr std::array<SizeChange, 4> kSizeChanges = {{{"batch"}, {"copies"}, {"both"}, {"none"}}};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

void require_sizes(bool condition, const std::string& expected) {
  if (!condition) throw Error("training option image_sizes: expected " + expected);
}

/// a b / c to the nearest whole number, halves up.
std::int64_t ratio_rounded(std::int64_t a, std::int64_t b, std::int64_t c) {
  return (2 * a * b + c) / (2 * c);
}

}  // namespace

std::vector<ImageSizes::Share> parse_image_sizes(std::string_view text) {
  std::vector<ImageSizes::Share> shares;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    const std::string_view one = text.substr(first, end - first);
    const std::size_t colon = std::min(one.find(':'), one.size());
    ImageSizes::Share share{.size = 0, .share = 1};
    const bool alone = colon == one.size() && text.size() == one.size();
    if (!read_number(one.substr(0, colon), share.size) ||
        (!alone && !read_number(one.substr(std::min(colon + 1, one.size())), share.share))) {
      throw usage_error(fmt::format(
          "image sizes: expected SIZE:SHARE, as in 32:0.5,24:0.5, or one SIZE, not '{}'", text));
    }
    shares.push_back(share);
    first = end + 1;
  }
  return shares;
}

std::string to_string(const ImageSizes& sizes) {
  std::string text;
  for (const auto& [size, share] : sizes.shares)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", size, share);
  text += " change " + sizes.change;
  if (sizes.smoothing > 0) text += fmt::format(" smoothing {}", sizes.smoothing);
  return text;
}

void check_image_sizes(const TrainOptions& o) {
  const ImageSizes& sizes = o.sizes;
  find_named("what changes with the image size", sizes.change, kSizeChanges, &SizeChange::name);
  require_sizes(sizes.smoothing >= 0 && sizes.smoothing <= kMostSmoothing,
                "smoothing in 0 to 1000000000");
  if (sizes.shares.empty()) {
    require_sizes(sizes.smoothing == 0, "sizes where gradients are smoothed");
    require_sizes(sizes.change == ImageSizes().change,
                  "sizes beside the change '" + sizes.change + "'");
    return;
  }
  require_sizes(o.batch <= kMostBatch, fmt::format("a batch of at most {}", kMostBatch));
  double sum = 0;
  for (auto one = sizes.shares.begin(); one != sizes.shares.end(); ++one) {
    const std::int64_t size = one->size;
    const double share = one->share;
    require_sizes(size >= 1 && size <= kMostPixels,
                  fmt::format("1 to {} pixels, not {}", kMostPixels, size));
    require_sizes(share > 0 && share <= 1,
                  fmt::format("for {} a share above 0, at most 1, not {}", size, share));
    require_sizes(
        std::none_of(sizes.shares.begin(), one,
                     [&size = size](const ImageSizes::Share& other) { return other.size == size; }),
        fmt::format("each size once, found {} twice", size));
    sum += share;
  }
  require_sizes(std::abs(sum - 1) <= kSumSlack,
                fmt::format("shares that add up to 1, not {}", sum));
  const bool copies = sizes.change == "copies" || sizes.change == "both";
  require_sizes(!copies || o.augments(),
                "augmentation where copies change, which makes them differ");
  require_sizes(sizes.smoothing == 0 || copies || o.copies > 1,
                "copies where gradients are smoothed, since the norm is that of one copy");
  require_sizes(sizes.smoothing == 0 || o.local_steps == 0, "no smoothing with local steps");
}

PlannedStep sized_step(const TrainOptions& options, std::int64_t own, std::int64_t size) {
  const std::string& change = options.sizes.change;
  const std::int64_t up = change == "both" ? own : own * own,
                     down = change == "both" ? size : size * size;
  PlannedStep step{.first = 0, .samples = options.batch, .image = size, .copies = options.copies};
  if (change == "none") return step;
  const bool copies = change != "batch" && 2 * options.copies * up >= down;
  if (copies) step.copies = ratio_rounded(options.copies, up, down);
  if (change == "both" && !copies) {  // the batch takes both
    step.samples = ratio_rounded(options.batch, own * own, size * size);
  } else if (change != "copies" || !copies) {
    step.samples = ratio_rounded(options.batch, up, down);
  }
  step.samples = std::max<std::int64_t>(step.samples, 1);
  return step;
}

std::vector<PlannedStep> epoch_steps(const TrainOptions& options, const Dataset& data,
                                     std::int64_t epoch) {
  const std::vector<ImageSizes::Share>& shares = options.sizes.shares;
  std::vector<PlannedStep> of_share;
  for (const ImageSizes::Share& share : shares)
    of_share.push_back(sized_step(options, data.input_shape()[0], share.size));
  const RandomSource source{options.seed, Stream::data,
                            tensor_word("data/image-size/" + std::to_string(epoch)), 0};
  const std::int64_t samples = data.train_count();
  std::vector<PlannedStep> steps;
  for (std::int64_t first = 0; first < samples;) {
    PlannedStep step{.first = 0, .samples = options.batch, .image = 0, .copies = options.copies};
    if (!shares.empty()) {
      double below = source.uniform(steps.size());
      std::size_t drawn = 0;
      while (drawn + 1 < shares.size() && below >= shares[drawn].share)
        below -= shares[drawn++].share;
      step = of_share[drawn];
    }
    step.first = first;
    step.samples = std::min(step.samples, samples - first);
    first += step.samples;
    steps.push_back(step);
  }
  return steps;
}

}  // namespace numemu::net
