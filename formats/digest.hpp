// SHA-256, the identity of rows, arrays and tensors.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace numemu {

std::array<std::uint8_t, 32> sha256(const void* data, std::size_t size);

/// Lower-case hexadecimal digest of `text`.
std::string sha256_hex(std::string_view text);

/// The digest of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  void add(const void* data, std::size_t size);
  /// Of all parts; nothing may be added after.
  std::string hex();

 private:
  std::shared_ptr<void> context_;
};

/// The Philox tensor word of "layer/role/step/use": the first 32 bits of the digest, little-endian.
std::uint32_t tensor_word(std::string_view identity);

}  // namespace numemu
