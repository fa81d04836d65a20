// The digest is taken of what codes mean, so that two files of one meaning are one codebook.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/codebook_identity.hpp"

#include "formats/digest.hpp"

namespace numemu {

std::string codebook_file(const std::string& format_name) {
  constexpr std::string_view kOpen = "codebook(";
  if (!format_name.starts_with(kOpen) || !format_name.ends_with(')')) return "";
  return format_name.substr(kOpen.size(), format_name.size() - kOpen.size() - 1);
}

std::string codebook_sha256(const Format& f) {
  if (f.kind != Kind::codebook) return "";
  const std::vector<double> entries = finite_values(f);
  return sha256_hex(
      {reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(double)});
}

}  // namespace numemu
