// rename() within one folder is atomic, so a reader never sees half a report.
#include "experiments/report/atomic_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "formats/error.hpp"

namespace numemu::experiments {
namespace {

[[noreturn]] void fail(const std::string& path, int code) {
  throw Error(fmt::format("cannot write '{}': {}", path,
                          std::error_code(code ? code : EIO, std::generic_category()).message()));
}

}  // namespace

std::string partial_path(const std::string& path) { return path + ".partial"; }

void publish_partial(const std::string& path) {
  if (std::rename(partial_path(path).c_str(), path.c_str()) == 0) return;
  const int code = errno;
  std::remove(partial_path(path).c_str());
  fail(path, code);
}

void write_atomically(const std::string& path, std::string_view content) {
  errno = 0;
  std::ofstream file(partial_path(path), std::ios::binary | std::ios::trunc);
  if (!file) fail(path, errno);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) {
    const int code = errno;
    std::remove(partial_path(path).c_str());
    fail(path, code);
  }
  publish_partial(path);
}

}  // namespace numemu::experiments
