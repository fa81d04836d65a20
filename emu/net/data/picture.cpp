// libpng and libjpeg report errors by calls that must not return: longjmp leaves frames of C alone,
// and no object with a destructor lives between setjmp and its calls.
#include "emu/net/data/picture.hpp"

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>
#include <png.h>
#include <setjmp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

// Deflate's largest expansion (RFC 1951); JPEG's, at least 2 bits for 64 pixels of a channel, is
// smaller. Scans of progressive files, each of which costs a pass over all pixels.
constexpr std::int64_t kMostExpansion = 1032;
constexpr int kMostScans = 200;
constexpr std::size_t kMessage = 256;

/// What the calls of a library share; plain memory, so that longjmp may pass it.
struct Run {
  jmp_buf escape;
  const std::uint8_t* bytes;
  std::size_t size, position;
  char message[kMessage];
};

[[noreturn]] void fail(const std::string& path, std::size_t position, const std::string& text) {
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  throw Error(fmt::format("{}: byte {}: {}", path, position, line));
}

/// Memory of the picture, after its size was compared with the file's.
Picture sized(const std::string& path, std::size_t position, std::size_t file, std::int64_t height,
              std::int64_t width) {
  if (height < 1 || width < 1 || height > kMostPixels / width) {
    fail(path, position,
         fmt::format("expected at most {} pixels, found {} x {}", kMostPixels, height, width));
  }
  if (height * width / kMostExpansion > static_cast<std::int64_t>(file)) {
    fail(path, position,
         fmt::format("expected pixels that {} bytes can hold, found {} x {}", file, height, width));
  }
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
}

extern "C" {

void png_failed(png_structp png, png_const_charp message) {
  Run& run = *static_cast<Run*>(png_get_error_ptr(png));
  std::snprintf(run.message, kMessage, "%s", message);
  longjmp(run.escape, 1);
}

void png_warned(png_structp, png_const_charp) {}

void png_more(png_structp png, png_bytep out, std::size_t count) {
  Run& run = *static_cast<Run*>(png_get_io_ptr(png));
  if (count > run.size - run.position) png_error(png, "expected more bytes, found the end");
  std::memcpy(out, run.bytes + run.position, count);
  run.position += count;
}

struct JpegErrors {
  jpeg_error_mgr base;
  Run run;
};

void jpeg_failed(j_common_ptr jpeg) {
  auto& errors = *reinterpret_cast<JpegErrors*>(jpeg->err);
  char text[JMSG_LENGTH_MAX];
  (*jpeg->err->format_message)(jpeg, text);
  std::snprintf(errors.run.message, kMessage, "%s", text);
  longjmp(errors.run.escape, 1);
}

/// Files in use have harmless bytes between markers; what ends early or cannot be decoded is
/// damage.
void jpeg_warned(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)
    jpeg_failed(jpeg);
}

void jpeg_progressed(j_common_ptr jpeg) {
  const auto* const decoder = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decoder->input_scan_number <= kMostScans) return;
  auto& errors = *reinterpret_cast<JpegErrors*>(jpeg->err);
  std::snprintf(errors.run.message, kMessage, "expected at most %d scans", kMostScans);
  longjmp(errors.run.escape, 1);
}

}  // extern "C"

/// Reads the head, or with `rows` the pixels; false after an error.
bool png_read(png_structp png, png_infop info, Run& run, png_bytep* rows) {
  if (setjmp(run.escape) != 0) return false;
  if (rows == nullptr) {
    png_read_info(png, info);
    if (png_get_bit_depth(png, info) == 16) png_set_strip_16(png);
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
  } else {
    png_read_image(png, rows);
    png_read_end(png, nullptr);
  }
  return true;
}

struct Png {
  Run run{};
  png_structp png;
  png_infop info;
  Png() : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &run, png_failed, png_warned)) {
    info = png_create_info_struct(png);
    // Chunks that give no pixels may be large and are of no use.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_user_limits(png, 1 << 26, 1 << 26);
    png_set_chunk_malloc_max(png, 1 << 20);
    png_set_read_fn(png, &run, png_more);
  }
  ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
};

Picture decode_png(const std::string& path, std::string_view bytes) {
  Png png;
  png.run.bytes = reinterpret_cast<const std::uint8_t*>(bytes.data());
  png.run.size = bytes.size();
  if (!png_read(png.png, png.info, png.run, nullptr)) fail(path, png.run.position, png.run.message);
  Picture picture =
      sized(path, png.run.position, bytes.size(), png_get_image_height(png.png, png.info),
            png_get_image_width(png.png, png.info));
  std::vector<png_bytep> rows(static_cast<std::size_t>(picture.height));
  for (std::size_t y = 0; y < rows.size(); ++y)
    rows[y] = picture.rgb.data() + static_cast<std::int64_t>(y) * picture.width * 3;
  if (png_get_rowbytes(png.png, png.info) != static_cast<std::size_t>(picture.width) * 3)
    fail(path, png.run.position, "expected pixels of 8 bits and three channels");
  if (!png_read(png.png, png.info, png.run, rows.data()))
    fail(path, png.run.position, png.run.message);
  return picture;
}

/// As png_read: the head, or all rows.
bool jpeg_read(jpeg_decompress_struct& jpeg, Run& run, std::uint8_t* rgb) {
  if (setjmp(run.escape) != 0) return false;
  if (rgb == nullptr) {
    jpeg_mem_src(&jpeg, run.bytes, run.size);
    jpeg_read_header(&jpeg, TRUE);
    if (jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK) {
      std::snprintf(run.message, kMessage, "expected grey or RGB, found CMYK");
      return false;
    }
    jpeg.out_color_space = JCS_RGB;
    return true;
  }
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = rgb + static_cast<std::size_t>(jpeg.output_scanline) * jpeg.output_width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

struct Jpeg {
  JpegErrors errors{};
  jpeg_decompress_struct decoder{};
  jpeg_progress_mgr progress{};
  Jpeg() {
    decoder.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jpeg_failed;
    errors.base.emit_message = jpeg_warned;
    jpeg_create_decompress(&decoder);
    progress.progress_monitor = jpeg_progressed;
    decoder.progress = &progress;
  }
  ~Jpeg() { jpeg_destroy_decompress(&decoder); }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
};

Picture decode_jpeg(const std::string& path, std::string_view bytes) {
  Jpeg jpeg;
  Run& run = jpeg.errors.run;
  run.bytes = reinterpret_cast<const std::uint8_t*>(bytes.data());
  run.size = bytes.size();
  const auto at = [&] {
    return jpeg.decoder.src == nullptr
               ? std::size_t{0}
               : run.size - std::min(run.size, jpeg.decoder.src->bytes_in_buffer);
  };
  if (!jpeg_read(jpeg.decoder, run, nullptr)) fail(path, at(), run.message);
  Picture picture =
      sized(path, at(), bytes.size(), jpeg.decoder.image_height, jpeg.decoder.image_width);
  if (!jpeg_read(jpeg.decoder, run, picture.rgb.data())) fail(path, at(), run.message);
  return picture;
}

}  // namespace

Picture decode_picture(const std::string& path, std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(path, bytes);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(path, bytes);
  throw Error(path + ": byte 0: expected a PNG or JPEG file");
}

// Pillow 9's Resample.c for 8 bits a channel, in its order of operations.

namespace {

constexpr int kWeightBits = 32 - 8 - 2;

/// The weights of one output line: pixels first to first + weight.size() - 1.
struct Line {
  std::int64_t first = 0;
  std::vector<std::int32_t> weight;
};

std::vector<Line> lines_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0), inverse = 1.0 / support;
  std::vector<Line> lines(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Line& line = lines[i];
    line.first = std::max(static_cast<std::int64_t>(centre - support + 0.5), std::int64_t{0});
    const std::int64_t last = std::min(static_cast<std::int64_t>(centre + support + 0.5), from);
    std::vector<double> weight;
    double sum = 0;
    for (std::int64_t x = line.first; x < last; ++x) {
      const double away = std::fabs((static_cast<double>(x) - centre + 0.5) * inverse);
      weight.push_back(away < 1 ? 1 - away : 0);
      sum += weight.back();
    }
    for (double w : weight) {
      if (sum != 0) w /= sum;
      const double scaled = w * (1 << kWeightBits);
      line.weight.push_back(static_cast<std::int32_t>(w < 0 ? scaled - 0.5 : scaled + 0.5));
    }
  }
  return lines;
}

/// Output (i, j, c) is at (i * lines + j) * 3 + c, from input lines `stride` apart.
void resample(const std::uint8_t* in, const std::vector<Line>& lines, std::int64_t stride,
              std::uint8_t* out, std::int64_t out_stride) {
  for (std::size_t j = 0; j < lines.size(); ++j) {
    for (int c = 0; c < 3; ++c) {
      std::int32_t sum = 1 << (kWeightBits - 1);
      const std::uint8_t* pixel = in + lines[j].first * stride + c;
      for (const std::int32_t weight : lines[j].weight) {
        sum += *pixel * weight;
        pixel += stride;
      }
      out[static_cast<std::int64_t>(j) * out_stride + c] =
          static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
    }
  }
}

}  // namespace

Picture resize_bilinear(const Picture& in, std::int64_t height, std::int64_t width) {
  Picture wide{in.height, width, {}};
  if (width == in.width) {
    wide.rgb = in.rgb;
  } else {
    wide.rgb.resize(static_cast<std::size_t>(in.height * width * 3));
    const std::vector<Line> lines = lines_of(in.width, width);
    for (std::int64_t y = 0; y < in.height; ++y)
      resample(in.rgb.data() + y * in.width * 3, lines, 3, wide.rgb.data() + y * width * 3, 3);
  }
  if (height == in.height) return wide;
  Picture out{height, width,
              std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3))};
  const std::vector<Line> lines = lines_of(in.height, height);
  for (std::int64_t x = 0; x < width; ++x)
    resample(wide.rgb.data() + x * 3, lines, width * 3, out.rgb.data() + x * 3, width * 3);
  return out;
}

Picture resize_shorter(const Picture& in, std::int64_t size) {
  const std::int64_t shorter = std::min(in.height, in.width);
  if (shorter == size) return in;
  // int(size * long / short) of Python, where both factors are whole numbers.
  return in.height <= in.width ? resize_bilinear(in, size, size * in.width / shorter)
                               : resize_bilinear(in, size * in.height / shorter, size);
}

Picture crop_centre(const Picture& in, std::int64_t size) {
  Picture out{size, size, std::vector<std::uint8_t>(static_cast<std::size_t>(size * size * 3), 0)};
  // Python's round(): halves go to even. torchvision pads a picture that is too small, half of the
  // difference before it, rounded down.
  const auto start = [&](std::int64_t extent) {
    if (extent < size) return -((size - extent) / 2);
    const std::int64_t twice = extent - size;
    return twice / 2 + (twice % 2 != 0 && twice / 2 % 2 != 0 ? 1 : 0);
  };
  const std::int64_t top = start(in.height), left = start(in.width);
  for (std::int64_t y = 0; y < size; ++y) {
    if (y + top < 0 || y + top >= in.height) continue;
    const std::int64_t first = std::max<std::int64_t>(0, -left),
                       last = std::min(size, in.width - left);
    std::copy_n(in.rgb.begin() + ((y + top) * in.width + first + left) * 3, (last - first) * 3,
                out.rgb.begin() + (y * size + first) * 3);
  }
  return out;
}

}  // namespace numemu::net
