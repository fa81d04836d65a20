// zlib's inflate under our own loop: gzread would pass over bytes that follow the gzip data in
// silence.
#include "emu/net/data/byte_source.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/error.hpp"

namespace numemu::net {
namespace {

constexpr int kGzipOnly = 15 + 16;  // inflateInit2: window 2^15, gzip header required

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

struct ByteSource::State {
  std::string path;
  std::unique_ptr<std::FILE, Close> file;
  std::int64_t file_size = 0;
  std::int64_t position = 0;
  bool gzip = false;
  bool member_ended = false;
  bool inflating = false;  ///< `stream` needs inflateEnd
  z_stream stream{};
  std::array<std::uint8_t, 65536> input;

  ~State() {
    if (inflating) inflateEnd(&stream);
  }

  [[noreturn]] void fail(std::int64_t offset, std::string_view text) const {
    throw Error(fmt::format("{}: {}byte {}: {}", path, gzip ? "inflated " : "", offset, text));
  }

  std::size_t read_file(std::uint8_t* to, std::size_t count) {
    const std::size_t got = std::fread(to, 1, count, file.get());
    if (got < count && std::ferror(file.get()) != 0)
      throw Error(fmt::format("{}: cannot read: {}", path, std::strerror(errno)));
    return got;
  }

  /// Up to `count` inflated bytes; fewer only where the gzip data properly end.
  std::size_t inflate_some(std::uint8_t* to, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      if (stream.avail_in == 0) {
        stream.next_in = input.data();
        stream.avail_in = static_cast<uInt>(read_file(input.data(), input.size()));
        if (stream.avail_in == 0) {
          if (member_ended) return done;
          fail(position + static_cast<std::int64_t>(done),
               "expected more gzip data, found the end of the file");
        }
      }
      if (member_ended) {  // another gzip member may follow (RFC 1952, 2.2)
        inflateReset(&stream);
        member_ended = false;
      }
      const auto want =
          static_cast<uInt>(std::min<std::size_t>(count - done, std::size_t{1} << 30));
      stream.next_out = to + done;
      stream.avail_out = want;
      const int status = inflate(&stream, Z_NO_FLUSH);
      done += want - stream.avail_out;
      member_ended = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        fail(position + static_cast<std::int64_t>(done),
             fmt::format("expected gzip data, found damage ({})",
                         stream.msg != nullptr ? stream.msg : "zlib error"));
      }
    }
    return done;
  }

  /// Bytes that may still follow.
  std::int64_t room() const {
    return (gzip ? kMostExpansion * file_size + kFreeExpansion : file_size) - position;
  }

  std::size_t some(std::uint8_t* to, std::size_t count) {
    return gzip ? inflate_some(to, count) : read_file(to, count);
  }
};

ByteSource::ByteSource(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Error(path + ": expected a regular file");
  s.file.reset(std::fopen(path.c_str(), "rb"));
  if (!s.file) throw Error(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  s.file_size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (error) throw Error(path + ": cannot determine its size");
  std::array<std::uint8_t, 2> magic{};
  const std::size_t got = s.read_file(magic.data(), magic.size());
  std::rewind(s.file.get());
  s.gzip = got == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (s.gzip) {
    s.inflating = inflateInit2(&s.stream, kGzipOnly) == Z_OK;
    if (!s.inflating) throw Error(path + ": zlib cannot start");
  }
}

ByteSource::~ByteSource() = default;

void ByteSource::require(std::int64_t count, std::string_view what) const {
  const State& s = *state_;
  if (count < 0 || count > kMaxArrayBytes) {
    fail(s.position, fmt::format("expected at most {} bytes of {}, found {} declared",
                                 kMaxArrayBytes, what, count));
  }
  if (count > s.room()) {
    fail(s.position, fmt::format("expected {} bytes of {}, found {}{}", count, what,
                                 s.gzip ? "at most " : "", std::max<std::int64_t>(s.room(), 0)));
  }
}

std::vector<std::uint8_t> ByteSource::read(std::int64_t count, std::string_view what) {
  require(count, what);
  State& s = *state_;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  const std::size_t got = s.some(bytes.data(), bytes.size());
  if (got < bytes.size())
    fail(s.position, fmt::format("expected {} bytes of {}, found {}", count, what, got));
  s.position += count;
  return bytes;
}

std::vector<std::uint8_t> ByteSource::read_all(std::string_view what) {
  constexpr std::size_t kStep = 65536;
  State& s = *state_;
  const std::int64_t most = std::min(kMaxArrayBytes, s.gzip ? s.room() / 4 : s.room());
  std::vector<std::uint8_t> bytes;
  if (!s.gzip) bytes.reserve(static_cast<std::size_t>(std::max<std::int64_t>(most, 0)) + kStep);
  for (std::size_t got = kStep; got == kStep;) {
    bytes.resize(bytes.size() + kStep);
    got = s.some(bytes.data() + bytes.size() - kStep, kStep);
    bytes.resize(bytes.size() - kStep + got);
    if (std::cmp_greater(bytes.size(), most))
      fail(s.position, fmt::format("expected at most {} bytes of {}, found more", most, what));
  }
  s.position += static_cast<std::int64_t>(bytes.size());
  return bytes;
}

std::uint32_t ByteSource::read_big_endian(std::string_view what) {
  std::uint32_t value = 0;
  for (const std::uint8_t byte : read(4, what)) value = value << 8 | byte;
  return value;
}

void ByteSource::expect_end() {
  std::uint8_t extra;
  if (state_->some(&extra, 1) != 0)
    fail(state_->position, "expected the end of the file, found more bytes");
}

void ByteSource::expect_label(std::int64_t offset, int label, int classes) const {
  if (label >= classes)
    fail(offset, fmt::format("expected a label of 0..{}, found {}", classes - 1, label));
}

void ByteSource::fail(std::int64_t offset, std::string_view text) const {
  state_->fail(offset, text);
}
std::int64_t ByteSource::position() const { return state_->position; }
const std::string& ByteSource::path() const { return state_->path; }

}  // namespace numemu::net
