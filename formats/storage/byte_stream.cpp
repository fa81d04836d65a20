// zlib's inflate under our own loop: gzread would pass over bytes that follow the gzip data in
// silence.
#include "formats/storage/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "formats/error.hpp"

namespace numemu {
namespace {

constexpr int kGzipOnly = 15 + 16;  // inflateInit2: window 2^15, gzip header required

}  // namespace

struct ByteStream::State {
  std::string name;
  int file = -1;
  bool close_file = false, gzip = false, inflating = false, member_ended = false;
  std::int64_t inflated = 0, consumed = 0, size = 0;
  z_stream stream{};
  std::array<unsigned char, 65536> input;
  std::size_t next = 0, end = 0;  ///< of `input`: what is read but neither given nor inflated

  ~State() {
    if (inflating) inflateEnd(&stream);
    if (close_file) ::close(file);
  }

  [[noreturn]] void fail(const std::string& text) const {
    throw Error(fmt::format("{}: inflated byte {}: {}", name, inflated, text));
  }

  std::size_t read_file(void* to, std::size_t count) {
    auto* bytes = static_cast<unsigned char*>(to);
    std::size_t done = 0;
    while (done < count) {
      const std::size_t part = std::min(count - done, std::size_t{1} << 30);
      const ssize_t got = ::read(file, bytes + done, part);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw file_error(fmt::format("{}: cannot read: {}", name, std::strerror(errno)));
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    consumed += static_cast<std::int64_t>(done);
    return done;
  }

  void refill() {
    next = 0;
    end = read_file(input.data(), input.size());
  }

  void start() {
    refill();
    gzip = end >= 2 && input[0] == 0x1f && input[1] == 0x8b;
    if (!gzip) return;
    inflating = inflateInit2(&stream, kGzipOnly) == Z_OK;
    if (!inflating) throw Error(name + ": zlib cannot start");
  }

  std::size_t copy_some(unsigned char* to, std::size_t count) {
    const std::size_t kept = std::min(count, end - next);
    std::memcpy(to, input.data() + next, kept);
    next += kept;
    return kept + (kept < count ? read_file(to + kept, count - kept) : 0);
  }

  /// Up to `count` inflated bytes; fewer only where the gzip data properly end.
  std::size_t inflate_some(unsigned char* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      if (next == end) {
        refill();
        if (next == end) {
          if (member_ended) break;
          fail("expected more gzip data, found the end of the file");
        }
      }
      if (member_ended) {  // another gzip member may follow (RFC 1952, 2.2)
        inflateReset(&stream);
        member_ended = false;
      }
      const auto want = static_cast<uInt>(std::min(count - done, std::size_t{1} << 30));
      stream.next_in = input.data() + next;
      stream.avail_in = static_cast<uInt>(end - next);
      stream.next_out = to + done;
      stream.avail_out = want;
      const int status = inflate(&stream, Z_NO_FLUSH);
      next = end - stream.avail_in;
      done += want - stream.avail_out;
      inflated += want - stream.avail_out;
      member_ended = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        fail(fmt::format("expected gzip data, found damage ({})",
                         stream.msg != nullptr ? stream.msg : "zlib error"));
      }
    }
    return done;
  }
};

ByteStream::ByteStream(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.close_file = path != "-";
  s.name = s.close_file ? path : "standard input";
  s.file = s.close_file ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  if (s.file < 0) {
    s.close_file = false;
    throw file_error(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  struct stat status;
  if (fstat(s.file, &status) == 0 && S_ISREG(status.st_mode)) s.size = status.st_size;
  s.start();
}

ByteStream::~ByteStream() = default;

std::size_t ByteStream::read(void* to, std::size_t count) {
  auto* bytes = static_cast<unsigned char*>(to);
  return state_->gzip ? state_->inflate_some(bytes, count) : state_->copy_some(bytes, count);
}

bool ByteStream::gzip() const { return state_->gzip; }
std::int64_t ByteStream::size() const { return state_->size; }
std::int64_t ByteStream::consumed() const { return state_->consumed; }
const std::string& ByteStream::name() const { return state_->name; }

}  // namespace numemu
