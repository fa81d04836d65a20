#include "policies/recipe/recipe_codebooks.hpp"

#include <fmt/format.h>

#include <string>

#include "formats/format.hpp"
#include "formats/storage/codebook_identity.hpp"

namespace numemu::policies {
namespace {

void add_codebooks(const Json& value, Json& out) {
  if (value.is_string()) {
    const std::string name = value.get<std::string>();
    if (!codebook_file(name).empty()) out[name] = codebook_sha256(find_format(name));
  } else if (value.is_object() || value.is_array()) {
    for (const Json& part : value) add_codebooks(part, out);
  }
}

}  // namespace

Json codebooks_of(const Json& recipe, const JsonReader& given) {
  if (!given.is_null() && !given.value().is_object()) given.fail("digests by name of a codebook");
  Json out;
  add_codebooks(recipe, out);
  for (const auto& item : out.items()) {
    if (given.is_null() || !given.has(item.key())) continue;
    if (const JsonReader digest = given.member(item.key()); digest.value() != item.value())
      digest.fail(fmt::format("{}, the digest of the entries in the file", item.value().text()));
  }
  return out;
}

}  // namespace numemu::policies
