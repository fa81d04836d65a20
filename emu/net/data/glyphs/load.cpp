// glyphs: from the cache when its hashes are right, else generated; either way exactly the pinned
// bytes.
#include <filesystem>
#include <string_view>

#include "emu/net/data/glyphs/glyphs.hpp"
#include "emu/net/data/idx.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "emu/net/memory.hpp"
#include "formats/digest.hpp"
#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Mean and deviation of the 60,000 training images on [0, 1], computed once from the pinned bytes:
// six digits.
constexpr double kGlyphMean = 0.168540, kGlyphDeviation = 0.182024;

constexpr std::int64_t kImageBytes = 28 * 28 + 1;  // with its label

/// What pins one split: where it lies in the sequence, its file prefix and the SHA-256 of its two
/// arrays.
struct Split {
  std::int64_t first, last;
  const char* prefix;
  std::string_view pixels, labels;
};

constexpr Split kTrain{0, glyphs::kTrainImages, "train",
                       "0e7822d621c482a594cd5a4e87ba8d742f48580ee3eab1ca65128fdd30178722",
                       "fa03635aaed2adf523cd3f8d734575cd6f19c105c5a1b4609c9fd665b04a0e2a"};
constexpr Split kTest{glyphs::kTrainImages, glyphs::kTrainImages + glyphs::kTestImages, "t10k",
                      "81ac45a1d2fafb246647673137fd2aba7cbc36b65a299ba782cc51a9c9203d22",
                      "39caa1d0ff14733077313fae2bc9ba64104ce631eeaefbad0b8051a5501f8175"};

std::string digest(const std::vector<std::uint8_t>& bytes) {
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool pinned(const Split& split, const Images& images) {
  return digest(images.pixels) == split.pixels && digest(images.labels) == split.labels;
}

bool read_cache(const std::string& folder, const Split& split, Images& images) {
  try {
    images = read_idx(folder, split.prefix);
  } catch (const Error&) {  // missing, truncated or damaged: it is made again
    return false;
  }
  return pinned(split, images);
}

/// A cache that cannot be written costs a second at the next start, no more: the set is complete in
/// memory.
void write_cache(const std::string& folder, const Split& split, const Images& images) {
  try {
    std::filesystem::create_directories(folder);
    write_idx(folder, split.prefix, images);
  } catch (const std::filesystem::filesystem_error&) {
  } catch (const Error&) {
  }
}

Images load(const std::string& folder, const Split& split) {
  require_beside_held((split.last - split.first) * kImageBytes, "data set glyphs");
  Images images;
  if (read_cache(folder, split, images)) return images;
  images = glyphs::generate(split.first, split.last);
  if (!pinned(split, images)) {
    throw Error("glyphs: the generated " + std::string(split.prefix) + " pixels have SHA-256 " +
                digest(images.pixels) + ", expected " + std::string(split.pixels) +
                " as pinned in the source");
  }
  write_cache(folder, split, images);
  return images;
}

}  // namespace

Dataset load_glyphs(const std::string& cache_folder) {
  const std::string folder = cache_folder + "/glyphs";
  Images train = load(folder, kTrain);
  Images test = load(folder, kTest);
  return Dataset("glyphs", glyphs::kClasses, std::move(train), std::move(test), {kGlyphMean},
                 {kGlyphDeviation});
}

}  // namespace numemu::net
