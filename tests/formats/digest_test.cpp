// SHA-256 against FIPS 180 examples.
#include "formats/digest.hpp"

#include <cstring>

#include "tests/catch.hpp"

namespace numemu::digest_test {
namespace {

TEST_CASE("digest: FIPS 180-4 examples", "[fast]") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("digest: the same in parts", "[fast]") {
  Sha256 parts;
  CHECK(Sha256().hex() == sha256_hex(""));
  for (const char* part : {"a", "", "bc"}) parts.add(part, std::strlen(part));
  CHECK(parts.hex() == sha256_hex("abc"));
}

TEST_CASE("digest: the tensor word is the first four bytes, little-endian", "[fast]") {
  CHECK(sha256_hex("conv1/weight/0/fprop").substr(0, 8) == "aa52b48a");
  CHECK(tensor_word("conv1/weight/0/fprop") == 0x8ab452aa);
}

}  // namespace
}  // namespace numemu::digest_test
