#include "emu/net/model/npz_zip.hpp"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <set>

#include "formats/error.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/safetensors_header.hpp"

namespace numemu::net {
namespace {

/// What an archive may make its reader allocate; a sixteenth MiB is for everything of fixed size.
constexpr std::int64_t kExpansion = 64, kAllowance = 15 << 20;
/// Of libzip and here for an entry of the directory, besides its name (measured: 300).
constexpr std::int64_t kEntryBytes = 512;

std::string text_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

}  // namespace

void ZipReader::Close::operator()(zip* archive) const { zip_discard(archive); }

void ZipReader::fail(const ZipEntry& entry, std::string_view text) const {
  throw Error(fmt::format("{}: entry {}: {}", path_, quote_name(entry.name), text));
}

ZipReader::ZipReader(const std::string& path) : path_(path) {
  // 2^57: no file comes near, and the product cannot overflow.
  const std::int64_t size = std::min(InputFile(path).left(), std::int64_t{1} << 56);
  left_ = kExpansion * size + kAllowance;
  int strict = 0, code = 0;
  zip_.reset(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &strict));
  // libzip does not tell which entry fails its strict checks: most are found by reading them.
  if (zip_ == nullptr) zip_.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (zip_ != nullptr) list_entries();
  if (strict == 0) return;
  for (const ZipEntry& entry : entries_) contents(entry);
  throw Error(fmt::format("{}: expected a zip archive whose directory and entries agree, found: {}",
                          path, text_of(strict)));
}

void ZipReader::list_entries() {
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  std::set<std::string_view> names;
  entries_.resize(static_cast<std::size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    ZipEntry& entry = entries_[static_cast<std::size_t>(i)];
    entry.index = static_cast<zip_uint64_t>(i);
    zip_stat_t stat;
    if (zip_stat_index(zip_.get(), entry.index, ZIP_FL_ENC_RAW, &stat) != 0)
      fail(entry, zip_strerror(zip_.get()));
    entry.name = stat.name;
    if (stat.encryption_method != ZIP_EM_NONE) fail(entry, "expected no encryption");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE) {
      fail(entry,
           fmt::format("expected method 0 (stored) or 8 (deflated), found {}", stat.comp_method));
    }
    if (stat.size > std::uint64_t{INT64_MAX})
      fail(entry, fmt::format("expected a size below 2^63, found {}", stat.size));
    entry.size = static_cast<std::int64_t>(stat.size);
    spend(entry, kEntryBytes);
    spend(entry, entry.size);
    if (!names.insert(entry.name).second) fail(entry, "expected each name once");
  }
}

void ZipReader::spend(const ZipEntry& entry, std::int64_t bytes) {
  if (bytes > left_) {
    fail(entry, fmt::format("expected contents of at most {} times the file and {} bytes in all, "
                            "found {} more declared than that leaves ({})",
                            kExpansion, kAllowance, bytes, left_));
  }
  left_ -= bytes;
}

std::string ZipReader::contents(const ZipEntry& entry) {
  struct CloseFile {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(zip_.get(), entry.index, 0));
  if (file == nullptr) fail(entry, zip_strerror(zip_.get()));
  std::string bytes(static_cast<std::size_t>(entry.size), '\0');
  zip_int64_t found = 0, got = 0;
  do {
    got =
        zip_fread(file.get(), bytes.data() + found, static_cast<zip_uint64_t>(entry.size - found));
    found += std::max<zip_int64_t>(got, 0);
  } while (got > 0 && found < entry.size);
  // libzip compares the CRC where it finds the end.
  char more = 0;
  if (got >= 0 && found == entry.size) got = zip_fread(file.get(), &more, 1);
  if (got < 0) {
    fail(entry, fmt::format("expected {} bytes, found '{}' after {}", entry.size,
                            zip_file_strerror(file.get()), found));
  }
  if (got > 0 || found < entry.size) {
    fail(entry, fmt::format("expected {} bytes, found {}", entry.size,
                            got > 0 ? "more" : fmt::format("{}", found)));
  }
  return bytes;
}

}  // namespace numemu::net
