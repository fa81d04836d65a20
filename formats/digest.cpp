// SHA-256 from OpenSSL.
#include "formats/digest.hpp"

#include <openssl/evp.h>

#include "formats/error.hpp"

namespace numemu {

std::array<std::uint8_t, 32> sha256(const void* data, std::size_t size) {
  std::array<std::uint8_t, 32> digest{};
  if (EVP_Digest(data, size, digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw Error("OpenSSL offers no SHA-256, expected a library with the default provider");
  return digest;
}

std::string sha256_hex(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : sha256(text.data(), text.size())) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::uint32_t tensor_word(std::string_view identity) {
  const auto digest = sha256(identity.data(), identity.size());
  std::uint32_t word = 0;
  for (std::size_t i = 4; i-- > 0;) word = word << 8 | digest[i];
  return word;
}

}  // namespace numemu
