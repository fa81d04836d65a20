// SHA-256 from OpenSSL.
#include "formats/digest.hpp"

#include <openssl/evp.h>

#include "formats/error.hpp"

namespace numemu {
namespace {

[[noreturn]] void fail() {
  throw Error("OpenSSL offers no SHA-256, expected a library with the default provider");
}

std::string hex_of(const std::array<std::uint8_t, 32>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

EVP_MD_CTX* context_of(const std::shared_ptr<void>& context) {
  return static_cast<EVP_MD_CTX*>(context.get());
}

}  // namespace

std::array<std::uint8_t, 32> sha256(const void* data, std::size_t size) {
  std::array<std::uint8_t, 32> digest{};
  if (EVP_Digest(data, size, digest.data(), nullptr, EVP_sha256(), nullptr) != 1) fail();
  return digest;
}

std::string sha256_hex(std::string_view text) { return hex_of(sha256(text.data(), text.size())); }

Sha256::Sha256()
    : context_(EVP_MD_CTX_new(), [](void* p) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(p)); }) {
  if (EVP_DigestInit_ex(context_of(context_), EVP_sha256(), nullptr) != 1) fail();
}

void Sha256::add(const void* data, std::size_t size) {
  if (EVP_DigestUpdate(context_of(context_), data, size) != 1) fail();
}

std::string Sha256::hex() {
  std::array<std::uint8_t, 32> digest{};
  if (EVP_DigestFinal_ex(context_of(context_), digest.data(), nullptr) != 1) fail();
  return hex_of(digest);
}

std::uint32_t tensor_word(std::string_view identity) {
  const auto digest = sha256(identity.data(), identity.size());
  std::uint32_t word = 0;
  for (std::size_t i = 4; i-- > 0;) word = word << 8 | digest[i];
  return word;
}

}  // namespace numemu
