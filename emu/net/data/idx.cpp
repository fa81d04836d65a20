// IDX as described at yann.lecun.com/exdb/mnist: magic 0x0000TTDD (type, dimensions), 32-bit
// extents, data.
#include "emu/net/data/idx.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "emu/net/data/byte_source.hpp"
#include "emu/net/data/load_dataset.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::net {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803,
                        kLabelsMagic = 0x00000801;  // unsigned bytes; 3 and 1 dimensions
constexpr std::uint32_t kSide = 28;
constexpr int kClasses = 10;

std::string find_file(const std::string& folder, const std::string& stem, const std::string& kind) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string path = folder + "/" + stem + joint + kind + ending;
      if (std::filesystem::exists(path)) return path;
    }
  }
  throw Error(fmt::format("{}: expected a file {}-{} or {}.{}, plain or .gz, found none", folder,
                          stem, kind, stem, kind));
}

void expect(const ByteSource& source, std::uint32_t found, std::uint32_t expected,
            std::string_view what) {
  if (found == expected) return;
  const bool hex = what == "magic";
  source.fail(source.position() - 4,
              hex ? fmt::format("expected {} {:#010x}, found {:#010x}", what, expected, found)
                  : fmt::format("expected {} {}, found {}", what, expected, found));
}

std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 255);
  }
  return bytes;
}

std::string_view text_of(const std::vector<std::uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Images read_idx(const std::string& folder, const std::string& prefix) {
  Images images{0, kSide, kSide, 1, {}, {}};
  ByteSource pixels(find_file(folder, prefix + "-images", "idx3-ubyte"));
  expect(pixels, pixels.read_big_endian("magic"), kImagesMagic, "magic");
  images.count = pixels.read_big_endian("the image count");
  expect(pixels, pixels.read_big_endian("the row count"), kSide, "rows");
  expect(pixels, pixels.read_big_endian("the column count"), kSide, "columns");
  images.pixels = pixels.read(images.count * kSide * kSide, "pixels");
  pixels.expect_end();

  ByteSource labels(find_file(folder, prefix + "-labels", "idx1-ubyte"));
  expect(labels, labels.read_big_endian("magic"), kLabelsMagic, "magic");
  expect(labels, labels.read_big_endian("the label count"),
         static_cast<std::uint32_t>(images.count), "label count, one for each image:");
  const std::int64_t first = labels.position();
  images.labels = labels.read(images.count, "labels");
  labels.expect_end();
  for (std::int64_t i = 0; i < images.count; ++i)
    labels.expect_label(first + i, images.labels[i], kClasses);
  return images;
}

void write_idx(const std::string& folder, const std::string& prefix, const Images& images) {
  const auto count = static_cast<std::uint32_t>(images.count);
  write_atomically(folder + "/" + prefix + "-images-idx3-ubyte",
                   {big_endian({kImagesMagic, count, kSide, kSide}), text_of(images.pixels)});
  write_atomically(folder + "/" + prefix + "-labels-idx1-ubyte",
                   {big_endian({kLabelsMagic, count}), text_of(images.labels)});
}

namespace {

// Mean and deviation of all training pixels on [0, 1], as in the PyTorch MNIST example.
constexpr double kMean = 0.1307, kDeviation = 0.3081;

}  // namespace

Dataset load_mnist(const std::string& folder) {
  Images train = read_idx(folder, "train");
  Images test = read_idx(folder, "t10k");
  return Dataset("mnist", 10, std::move(train), std::move(test), {kMean}, {kDeviation});
}

}  // namespace numemu::net
