// A folder is usable if the nearest existing one is writable.
// Cold: a negligible share of any run (docs/build.md).
#include "formats/storage/output_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "formats/error.hpp"

namespace numemu {

void require_writable_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::path there = folder.empty() ? "." : folder;
  while (std::filesystem::symlink_status(there, error).type() ==
         std::filesystem::file_type::not_found) {
    const std::filesystem::path parent = there.parent_path();
    there = parent.empty() || parent == there ? std::filesystem::path(".") : parent;
  }
  const std::filesystem::file_status status = std::filesystem::status(there, error);
  if (!error && !std::filesystem::is_directory(status)) {
    throw Error(there == folder ? folder + ": expected a folder"
                                : fmt::format("{}: cannot be created ({} is not a folder)", folder,
                                              there.string()));
  }
  if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw Error(fmt::format("{}: cannot be written ({})", folder, std::strerror(errno)));
}

std::string fresh_folder(const std::string& folder) {
  std::error_code ignored;
  std::string name = folder.substr(0, folder.find_last_not_of('/') + 1);
  if (const std::filesystem::path last = std::filesystem::path(name).filename();
      last == "." || last == "..")
    name = std::filesystem::weakly_canonical(name, ignored);
  for (int n = 2;; ++n) {
    const std::string other = fmt::format("{}-{}", name, n);
    if (!std::filesystem::exists(std::filesystem::symlink_status(other, ignored))) return other;
  }
}

}  // namespace numemu
