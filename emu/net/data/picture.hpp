// PNG and JPEG files as RGB bytes, and their resizing as Pillow resizes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// [height, width, 3] bytes.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;
};

/// Most pixels of a picture: 64 Mi. A file may declare 1032 bytes of pixels for each of its own.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

/// Decodes a whole file, PNG or JPEG by its first bytes. Grey becomes RGB, alpha is dropped, 16
/// bits keep their upper 8, as Pillow's convert("RGB"). Sizes are checked before memory is taken.
/// Throws Error("PATH: byte N: ...") for damage, truncation and CMYK.
Picture decode_picture(const std::string& path, std::string_view bytes);

/// Pillow's Image.resize(BILINEAR): a triangle as wide as the shrinking, 22 bits of weight, rounded
/// to bytes after each axis, width first.
Picture resize_bilinear(const Picture&, std::int64_t height, std::int64_t width);
/// torchvision's Resize(S): the shorter side becomes S, the other keeps the ratio, rounded down.
Picture resize_shorter(const Picture&, std::int64_t size);
/// torchvision's CenterCrop(S); what is beyond the picture is black.
Picture crop_centre(const Picture&, std::int64_t size);

}  // namespace numemu::net
