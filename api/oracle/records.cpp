#include "api/oracle/records.hpp"

#include <filesystem>
#include <numeric>

#include "emu/net/data/npz.hpp"
#include "emu/oracle/files/text.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/unit/description/json.hpp"

namespace numemu::api {
namespace {

bool is_npz(const std::string& in) { return in.ends_with(".npz"); }

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// What the files of ports begin with; empty: the name is that of another file.
std::string ports_of(const std::string& in) {
  if (is_there(in)) {
    const std::string prefix(oracle::port_prefix(in));
    return prefix.empty() || !(is_there(oracle::port_file(prefix, "a")) ||
                               is_there(oracle::port_file(prefix, "in")))
               ? ""
               : prefix;
  }
  const bool ports = is_there(oracle::port_file(in, "a")) || is_there(oracle::port_file(in, "in"));
  return in != "-" && ports ? in : "";
}

}  // namespace

oracle::ByteReader text_of(ByteStream& stream) {
  return oracle::as_utf8(stream.name(),
                         [&stream](char* to, std::size_t most) { return stream.read(to, most); });
}

RecordFile::RecordFile(const std::string& in) : name_(in) {
  if (is_npz(in)) {
    arrays_.emplace(in, net::read_npz_arrays(in, true));
    return;
  }
  const auto open = [this](const std::string& path) -> ByteStream& {
    return *streams_.emplace_back(std::make_unique<ByteStream>(path));
  };
  if (const std::string prefix = ports_of(in); !prefix.empty()) {
    name_ = prefix;
    ports_.emplace(prefix, [open](const std::string& file) {
      return is_there(file) ? text_of(open(file)) : oracle::ByteReader();
    });
    return;
  }
  ByteStream& stream = open(in);
  name_ = stream.name();
  text_.emplace(name_, oracle::as_text(name_, text_of(stream)));
}

const std::string& RecordFile::header() const {
  return text_ ? text_->header() : arrays_ ? arrays_->header() : ports_->header();
}

bool RecordFile::read(const oracle::Layout& layout, std::int64_t most, oracle::Records& records) {
  return text_     ? text_->read(layout, most, records)
         : arrays_ ? arrays_->read(layout, most, records)
                   : ports_->read(layout, most, records);
}

bool RecordFile::has_optional() const {
  return text_ ? text_->has_optional() : arrays_ ? arrays_->has_optional() : ports_->has_optional();
}

std::int64_t RecordFile::size() const {
  return std::accumulate(streams_.begin(), streams_.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& stream) { return sum + stream->size(); });
}

std::int64_t RecordFile::consumed() const {
  return std::accumulate(
      streams_.begin(), streams_.end(), std::int64_t{0},
      [](std::int64_t sum, const auto& stream) { return sum + stream->consumed(); });
}

bool is_form_of_fields(const std::string& in) { return is_npz(in) || !ports_of(in).empty(); }

}  // namespace numemu::api
