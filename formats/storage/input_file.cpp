// pread into the caller's memory: a stream would copy everything once more.
#include "formats/storage/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "formats/error.hpp"
#include "formats/storage/array.hpp"

namespace numemu {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for its writer before it is refused.
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw file_error(fmt::format("{}: cannot open: {}", path_, std::strerror(errno)));
  struct stat status;
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file_);
    throw file_error(path_ + ": expected a regular file");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { close(file_); }

void InputFile::read(void* out, std::int64_t count) {
  // Linux stops at 2^31 - 4096 bytes; what is digested should still be in the cache.
  const std::int64_t longest = std::int64_t{1} << (digest_ ? 18 : 30);
  auto* to = static_cast<char*>(out);
  while (count > 0) {
    const ssize_t got =
        pread(file_, to, static_cast<std::size_t>(std::min(count, longest)), position_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("cannot read: {}", std::strerror(errno)));
    if (got == 0)
      fail(fmt::format("expected {} more, the file has shrunk", counted(count, "byte")));
    if (digest_) digest_->add(to, static_cast<std::size_t>(got));
    to += got;
    position_ += got;
    count -= got;
  }
}

std::string InputFile::read(std::int64_t count) {
  std::string bytes(static_cast<std::size_t>(count), '\0');
  read(bytes.data(), count);
  return bytes;
}

void InputFile::skip(std::int64_t count) {
  if (!digest_) {
    position_ += count;
    return;
  }
  constexpr std::int64_t kPart = 1 << 18;
  std::vector<char> part(static_cast<std::size_t>(std::min(count, kPart)));
  for (std::int64_t passed = 0; passed < count; passed += kPart)
    read(part.data(), std::min(kPart, count - passed));
}

void InputFile::rewind(bool digested) {
  position_ = 0;
  digest_.reset();
  if (digested) digest_.emplace();
}

std::string InputFile::sha256() {
  skip(left());
  return digest_->hex();
}

std::string file_sha256(const std::string& path) {
  InputFile file(path);
  file.rewind(true);
  return file.sha256();
}

void InputFile::fail_at(std::int64_t position, const std::string& text) const {
  throw Error(fmt::format("{}: byte {}: {}", path_, position, text));
}

}  // namespace numemu
