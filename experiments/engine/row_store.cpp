// Rows on disk: appended in point order, one JSON line each; a file cut anywhere resumes to the
// same bytes.
#include "experiments/engine/row_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "emu/net/model/atomic_file.hpp"
#include "formats/error.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {
namespace {

using Json = nlohmann::ordered_json;

std::string reason() { return std::strerror(errno); }

void write_all(int file, const std::string& text, const std::string& path) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Error(fmt::format("{}: cannot be written ({})", path, reason()));
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(file) != 0 && errno != EINVAL)
    throw Error(fmt::format("{}: cannot be written ({})", path, reason()));
}

/// Complete lines of a file (nothing if it does not exist); what follows the last newline is a
/// killed program's.
std::vector<std::string> complete_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line) && !file.eof();) lines.push_back(line);
  return lines;
}

Json parse_row(const std::string& line, const std::string& path, std::size_t number) {
  Json row = Json::parse(line, nullptr, false);
  const auto text = [&](const char* key) {
    return row.is_object() && row.contains(key) && row[key].is_string();
  };
  if (!text("key") || !text("version") || !row.contains("point")) {
    throw Error(fmt::format(
        "{}: line {}: expected a row (a JSON object with key, point and version)", path, number));
  }
  return row;
}

}  // namespace

std::string Shard::rows_file() const {
  return count == 1 ? "rows.jsonl" : fmt::format("rows.{}.jsonl", index);
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d/%d%c", &shard.index, &shard.count, &rest) != 2 ||
      shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    throw Error(fmt::format("--shard: expected i/n with 0 <= i < n, not '{}'", text));
  }
  return shard;
}

/// Held for the life of a sweep; the kernel releases it when the process dies.
class FileLock {
 public:
  FileLock(const std::string& path, const std::string& guarded)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0)
      throw Error(fmt::format("{}: cannot be opened for writing ({})", path, reason()));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw Error(guarded + ": another sweep is writing to it");
    }
  }
  ~FileLock() { ::close(file_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_;
};

RowStore::RowStore(const std::string& folder, const Shard& shard, std::vector<std::string> keys,
                   Existing existing)
    : path_(folder + "/" + shard.rows_file()), keys_(std::move(keys)) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be created ({})", folder, error.message()));
  lock_ = std::make_unique<FileLock>(fmt::format("{}/.{}.lock", folder, shard.rows_file()), path_);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("rows.") || !name.ends_with(".jsonl")) continue;
    // Rows of one shard and rows of several in one folder would be merged twice.
    const bool other_split = (name == "rows.jsonl") != (shard.count == 1);
    if (other_split && existing == Existing::fresh) std::filesystem::remove(entry.path());
    if (other_split && existing != Existing::fresh) {
      throw Error(entry.path().string() +
                  ": was written with another --shard; use --fresh or another --out");
    }
  }
  if (existing != Existing::fresh) read_existing(existing);
  bool gap = false;
  for (const std::string& key : keys_) {
    gap = gap || !lines_.contains(key);
    prefix_ = prefix_ && !(gap && lines_.contains(key));
  }
  kept_ = lines_.size();
  net::write_atomically(path_, {in_point_order()});
}

RowStore::~RowStore() = default;

void RowStore::read_existing(Existing existing) {
  const std::set<std::string> wanted(keys_.begin(), keys_.end());
  std::size_t number = 0;
  for (const std::string& line : complete_lines(path_)) {
    const Json row = parse_row(line, path_, ++number);
    if (row["version"] != kNumericsVersion) {
      if (existing != Existing::keep_old) {
        throw Error(
            fmt::format("{}: line {}: a row of numerics version {}, this program is {}; use "
                        "--keep-old or --fresh",
                        path_, number, row["version"].get<std::string>(), kNumericsVersion));
      }
      old_lines_.push_back(line);
    } else if (wanted.contains(row["key"].get<std::string>())) {
      lines_[row["key"]] = line;
    } else {
      throw Error(fmt::format("{}: line {}: a row of another sweep; use --fresh or another --out",
                              path_, number));
    }
  }
}

std::string RowStore::in_point_order() const {
  std::string text;
  for (const std::string& line : old_lines_) text += line + "\n";
  for (const std::string& key : keys_) {
    if (const auto line = lines_.find(key); line != lines_.end()) text += line->second + "\n";
  }
  return text;
}

void RowStore::append(const std::string& key, const std::string& line) {
  lines_[key] = line;
  if (!prefix_) {  // points were added in front of known rows: nothing known may be lost to a kill
    net::write_atomically(path_, {in_point_order()});
    return;
  }
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) throw Error(fmt::format("{}: cannot be opened for writing ({})", path_, reason()));
  write_all(file, line + "\n", path_);
  ::close(file);
}

std::vector<Json> merge_rows(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("rows.") && name.ends_with(".jsonl")) files.push_back(entry.path());
  }
  if (error)
    throw Error(fmt::format("{}: expected a folder with rows ({})", folder, error.message()));
  if (files.empty()) throw Error(folder + ": expected rows.jsonl or rows.<i>.jsonl in it");
  // rows.10 after rows.9: by length, then by name.
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  std::vector<std::vector<Json>> shards;
  std::map<std::string, std::string> seen;
  for (const std::string& path : files) {
    shards.emplace_back();
    std::size_t number = 0;
    for (const std::string& line : complete_lines(path)) {
      Json row = parse_row(line, path, ++number);
      const auto [at, added] = seen.emplace(row["key"], line);
      if (added) {
        shards.back().push_back(std::move(row));
      } else if (at->second != line) {
        throw Error(fmt::format("{}: line {}: differs from another row with the same key {}", path,
                                number, at->first.substr(0, 12)));
      }
    }
  }
  // Point p stands in shard p mod n at place p / n.
  std::vector<Json> rows;
  std::size_t longest = 0;
  for (const auto& shard : shards) longest = std::max(longest, shard.size());
  for (std::size_t place = 0; place < longest; ++place) {
    for (auto& shard : shards) {
      if (place < shard.size()) rows.push_back(std::move(shard[place]));
    }
  }
  return rows;
}

}  // namespace numemu::experiments
