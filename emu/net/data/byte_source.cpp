// Sizes are compared with what the file may inflate to before memory is taken.
#include "emu/net/data/byte_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "emu/net/memory.hpp"
#include "formats/error.hpp"
#include "formats/storage/byte_stream.hpp"

namespace numemu::net {
namespace {

const std::string& regular_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw Error(path + ": expected a regular file");
  return path;
}

}  // namespace

struct ByteSource::State {
  explicit State(const std::string& path) : stream(regular_file(path)) {}

  [[noreturn]] void fail(std::int64_t offset, std::string_view text) const {
    throw Error(fmt::format("{}: {}byte {}: {}", stream.name(), stream.gzip() ? "inflated " : "",
                            offset, text));
  }

  /// Bytes that may still follow.
  std::int64_t room() const {
    return (stream.gzip() ? kMostExpansion * stream.size() + kFreeExpansion : stream.size()) -
           position;
  }

  ByteStream stream;
  std::int64_t position = 0;
};

ByteSource::ByteSource(const std::string& path) : state_(std::make_unique<State>(path)) {}

ByteSource::~ByteSource() = default;

void ByteSource::require(std::int64_t count, std::string_view what) const {
  const State& s = *state_;
  if (count < 0 || count > kMaxArrayBytes) {
    fail(s.position, fmt::format("expected at most {} bytes of {}, found {} declared",
                                 kMaxArrayBytes, what, count));
  }
  if (count > s.room()) {
    fail(s.position,
         fmt::format("expected {} bytes of {}, found {}{}", count, what,
                     s.stream.gzip() ? "at most " : "", std::max<std::int64_t>(s.room(), 0)));
  }
  require_beside_held(count, path());
}

std::vector<std::uint8_t> ByteSource::read(std::int64_t count, std::string_view what) {
  require(count, what);
  State& s = *state_;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
  const std::size_t got = s.stream.read(bytes.data(), bytes.size());
  if (got < bytes.size())
    fail(s.position, fmt::format("expected {} bytes of {}, found {}", count, what, got));
  s.position += count;
  return bytes;
}

std::vector<std::uint8_t> ByteSource::read_all(std::string_view what) {
  constexpr std::size_t kStep = 65536;
  State& s = *state_;
  const std::int64_t most = std::min(kMaxArrayBytes, s.stream.gzip() ? s.room() / 4 : s.room());
  require_beside_held(s.stream.size(), path());
  std::vector<std::uint8_t> bytes;
  if (!s.stream.gzip())
    bytes.reserve(static_cast<std::size_t>(std::max<std::int64_t>(most, 0)) + kStep);
  for (std::size_t got = kStep; got == kStep;) {
    bytes.resize(bytes.size() + kStep);
    got = s.stream.read(bytes.data() + bytes.size() - kStep, kStep);
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
  if (state_->stream.read(&extra, 1) != 0)
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
const std::string& ByteSource::path() const { return state_->stream.name(); }

}  // namespace numemu::net
