// tokens:FILE: little-endian numbers of 16 or 32 bits in windows; the targets are the next tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr std::int64_t kContext = 128, kCalibrationWindows = 64,
                       kMostTokens = std::int64_t{1} << 20;
/// A float32 holds every token below.
constexpr std::int64_t kMostVocabulary = std::int64_t{1} << 24;

class TokenSamples final : public Samples {
 public:
  explicit TokenSamples(const SourceOptions& options)
      : context_(options.whole("context", kContext, 1, kMostTokens)),
        width_(options.choice("width", {"16", "32"}) == "16" ? 2 : 4) {
    const std::string& path = options.path();
    bytes_ = ByteSource(path).read_all("tokens");
    const auto size = static_cast<std::int64_t>(bytes_.size());
    if (size % width_ != 0) {
      throw Error(fmt::format("{}: byte {}: expected whole tokens of {} bytes, found {} more", path,
                              size - size % width_, width_, size % width_));
    }
    count_ = size / width_;
    const bool all = options.choice("test", {"last", "all"}) == "all";
    validation_ = all ? 0 : count_ * 90 / 100;
    test_ = all ? 0 : count_ * 95 / 100;
    const auto windows = [&](const char* split, std::int64_t first, std::int64_t last) {
      const std::int64_t n = (last - first - 1) / context_;
      if (last - first > context_) return n;
      throw Error(fmt::format("{}: expected at least {} tokens for {}, found {} of {}", path,
                              context_ + 1, split, last - first, count_));
    };
    facts_.kind = DataKind::text;
    facts_.noun = "windows";
    facts_.target_shape = facts_.input_shape = {context_};
    facts_.sizes.test = windows("test", test_, count_);
    if (!all) {
      facts_.sizes.validation = windows("validation", validation_, test_);
      facts_.sizes.train = windows("training", 0, validation_);
    }
    facts_.sizes.calibration = std::min(kCalibrationWindows, facts_.sizes.train);
    const std::int64_t most = options.whole("vocabulary", kMostVocabulary, 1, kMostVocabulary);
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::int64_t token = at(i);
      if (token >= most) {
        throw Error(fmt::format("{}: byte {}: expected a token from 0 to {}, found {}", path,
                                i * width_, most - 1, token));
      }
      largest = std::max(largest, token);
    }
    facts_.classes = options.has("vocabulary") ? most : largest + 1;
    facts_.digest =
        sha256_hex(
            fmt::format("{} width {} context {} vocabulary {} test {}",
                        sha256_hex({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}),
                        width_, context_, facts_.classes, all ? "all" : "last"))
            .substr(0, 16);
    facts_.note = fmt::format("tokens: {} of {} bits, vocabulary {}, windows of {}", count_,
                              width_ * 8, facts_.classes, context_);
  }

  void read(Part part, std::int64_t id, const AugmentDraw*, float* x,
            TargetSpan targets) const override {
    const std::int64_t start = part == Part::train        ? 0
                               : part == Part::validation ? validation_
                                                          : test_;
    const std::int64_t from = start + id * context_;
    for (std::int64_t t = 0; t < context_; ++t) {
      x[t] = static_cast<float>(at(from + t));
      targets.classes[t] = static_cast<std::int32_t>(at(from + t + 1));
    }
  }

 private:
  std::int64_t at(std::int64_t i) const {
    const std::uint8_t* const b = bytes_.data() + i * width_;
    const std::int64_t low = b[0] | b[1] << 8;
    return width_ == 2 ? low : low | std::int64_t{b[2]} << 16 | std::int64_t{b[3]} << 24;
  }

  std::int64_t context_, width_, count_ = 0, validation_ = 0, test_ = 0;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

Dataset load_tokens(const std::string& place) {
  const SourceOptions options("tokens", place, {"width", "context", "vocabulary", "test"});
  return Dataset("tokens", std::make_shared<TokenSamples>(options));
}

}  // namespace numemu::net
