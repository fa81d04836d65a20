#include "experiments/engine/row_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "experiments/engine/losses_file.hpp"
#include "experiments/predict/version.hpp"
#include "formats/error.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/file_lock.hpp"
#include "formats/storage/input_file.hpp"
#include "formats/storage/output_files.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {
namespace {

constexpr const char* kSweep = "sweep";

/// Complete lines of a file (nothing if it does not exist); what follows the last newline is a
/// killed program's.
std::vector<std::string> complete_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return lines;
  InputFile file(path);
  const std::string text = file.read(file.left());
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

/// Decimal digits and nothing else.
std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// -1 for rows.jsonl, i for rows.<i>.jsonl, nullopt for the name of any other file.
std::optional<int> shard_index(std::string_view name) {
  constexpr std::string_view kHead = "rows.", kTail = ".jsonl";
  if (name == "rows.jsonl") return -1;
  if (!name.starts_with(kHead) || !name.ends_with(kTail) ||
      name.size() <= kHead.size() + kTail.size())
    return std::nullopt;
  return digits(name.substr(kHead.size(), name.size() - kHead.size() - kTail.size()));
}

/// The rows files of a folder, by index.
std::map<int, std::string> rows_files(const std::string& folder) {
  std::map<int, std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (const auto index = shard_index(name)) files[*index] = folder + "/" + name;
  }
  if (error)
    throw file_error(fmt::format("{}: expected a folder with rows ({})", folder, error.message()));
  return files;
}

/// Whether rows carry digests: one that carries none is then no row as it was written.
bool carry_digests(const std::vector<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const Json row = Json::parse_or_null(line);
    return row.is_object() && row.contains("digest");
  });
}

/// Rows of the first version lack the key. No version where the point turns predictions off.
std::optional<std::int64_t> prediction_version(const Row& row) {
  if (row.turned_off()) return std::nullopt;
  return row.predicted.version.value_or(1);
}

/// Throws DamagedRow where the file's rows carry digests and this one does not.
void require_digest(const Json& row, bool carried, const std::string& path, std::size_t number) {
  if (carried && !row.contains("digest"))
    throw DamagedRow(fmt::format("{}: line {}: a damaged row (digest missing)", path, number));
}

std::string lock_path(const std::string& rows_path) {
  const std::filesystem::path path(rows_path);
  return (path.parent_path() / fmt::format(".{}.lock", path.filename().string())).string();
}

std::string busy(const std::string& rows_path, const std::string& writer) {
  return fmt::format("{}: another {} is writing to it", rows_path, writer);
}

/// "--out runs/sweep-2", for messages about rows that are in the way.
std::string another_out(const std::string& rows_path) {
  return "--out " + fresh_folder(std::filesystem::path(rows_path).parent_path());
}

}  // namespace

std::string Shard::rows_file() const {
  return count == 1 ? "rows.jsonl" : fmt::format("rows.{}.jsonl", index);
}

Shard parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view all = text;
  const auto index = digits(all.substr(0, slash));
  const auto count = digits(all.substr(std::min(slash + 1, text.size())));
  if (!index || !count || *index >= *count)
    throw usage_error(
        fmt::format("--shard: expected i/n with 0 <= i < n, not '{}'", text.substr(0, 40)));
  return {*index, *count};
}

RowStore::RowStore(const std::string& folder, const Shard& shard, std::vector<std::string> keys,
                   Existing existing)
    : path_(folder + "/" + shard.rows_file()), keys_(std::move(keys)) {
  lock(folder, kSweep);
  settle_shards(folder, shard, existing);
  if (existing != Existing::fresh) read_existing(existing, nullptr);
  begin();
}

RowStore::RowStore(const RowFile& file, const std::string& folder, std::vector<std::string> keys,
                   Existing existing)
    : path_(folder + "/" + file.name), keys_(std::move(keys)) {
  lock(folder, file.writer);
  if (existing != Existing::fresh) read_existing(existing, &file);
  begin();
}

RowStore::RowStore(RowStore&&) noexcept = default;
RowStore::~RowStore() = default;

void RowStore::lock(const std::string& folder, const std::string& writer) {
  make_folder(folder);
  lock_ = std::make_unique<FileLock>(lock_path(path_), busy(path_, writer));
}

void RowStore::begin() {
  bool gap = false;
  for (const std::string& key : keys_) {
    gap = gap || !lines_.contains(key);
    prefix_ = prefix_ && !(gap && lines_.contains(key));
  }
  kept_ = lines_.size();
  // Another order of the same rows leaves what was concluded from them.
  const std::vector<std::string> lines = complete_lines(path_);
  std::set<std::string> rows(old_lines_.begin(), old_lines_.end());
  for (const auto& [key, line] : lines_) rows.insert(line);
  if (rows != std::set<std::string>(lines.begin(), lines.end())) drop_conclusion();
  write_atomically(path_, {in_point_order()});
}

void RowStore::drop_conclusion() {
  if (dropped_) return;
  // A run that is killed before its own would leave these beside its rows, as if they were theirs.
  for (const char* name :
       {"experiment.json", "report.html", "report.csv", "report.sqlite", "report.md"}) {
    const std::filesystem::path file = std::filesystem::path(path_).parent_path() / name;
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error)
      throw file_error(fmt::format("{}: cannot be removed ({})", file.string(), error.message()));
  }
  dropped_ = true;
}

/// Rows of different numbers of shards in one folder would be merged out of order, some of them
/// twice.
void RowStore::settle_shards(const std::string& folder, const Shard& shard, Existing existing) {
  for (const auto& [index, path] : rows_files(folder)) {
    const auto belongs = [&, at = index, &file = path] {
      const int noted = noted_number(lock_path(file));
      return (at < 0) == (shard.count == 1) && at < shard.count &&
             (noted == 0 || noted == shard.count);
    };
    if (belongs()) continue;
    if (existing != Existing::fresh)
      throw Error(fmt::format("{}: was written with another --shard; use --fresh or {}", path,
                              another_out(path)));
    if (path == path_) continue;  // about to be rewritten
    const FileLock other(lock_path(path), busy(path, kSweep));
    if (!belongs()) std::filesystem::remove(path);
  }
  lock_->note(shard.count);
}

/// `file` is null for rows of a sweep.
void RowStore::read_existing(Existing existing, const RowFile* file) {
  const std::set<std::string> wanted(keys_.begin(), keys_.end());
  const std::vector<std::string> lines = complete_lines(path_);
  const bool carried = carry_digests(lines);
  std::size_t number = 0;
  for (const std::string& line : lines) {
    try {
      const Json row = parse_identity(line, path_, ++number);
      require_digest(row, carried, path_, number);
      take_row(row, row.contains("digest") ? line : with_digest(line), number, wanted, existing,
               file);
    } catch (const DamagedRow& error) {
      damaged_.push_back(error.what() + std::string("; dropped, will be computed again"));
    }
  }
}

void RowStore::require_losses_of(const Json& row, std::size_t number) const {
  if (!row.contains("losses")) return;
  try {
    read_losses(std::filesystem::path(path_).parent_path(), read_row(row));
  } catch (const Error& error) {
    throw DamagedRow(
        fmt::format("{}: line {}: a row without its losses ({})", path_, number, error.what()));
  }
}

void RowStore::take_row(const Json& row, const std::string& line, std::size_t number,
                        const std::set<std::string>& wanted, Existing existing,
                        const RowFile* file) {
  if (row["version"] != kNumericsVersion) {
    if (existing != Existing::keep_old) {
      throw Error(fmt::format(
          "{}: line {}: a row of numerics version {}, this program is {}; use --keep-old, --fresh "
          "or {}",
          path_, number, row["version"].get<std::string>(), kNumericsVersion, another_out(path_)));
    }
    old_lines_.push_back(line);
  } else if (wanted.contains(row["key"].get<std::string>())) {
    if (file == nullptr) require_losses_of(row, number);
    lines_[row["key"]] = line;
  } else if (file != nullptr) {
    old_lines_.push_back(line);
  } else {
    throw Error(fmt::format("{}: line {}: a row from another sweep; use --fresh or {}", path_,
                            number, another_out(path_)));
  }
  if (file == nullptr) {
    const Row checked = checked_row(row, path_, number);
    if (const std::optional<std::int64_t> made = prediction_version(checked);
        made && checked.version == kNumericsVersion && *made != kPredictionVersion) {
      throw Error(fmt::format(
          "{}: line {}: a row whose predictions have version {}, this program's have {}; use "
          "--fresh or {}",
          path_, number, *made, kPredictionVersion, another_out(path_)));
    }
  } else if (!file->holds(row)) {
    throw Error(fmt::format("{}: line {}: expected a row with {}", path_, number, file->needs));
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

void RowStore::append(const std::string& key, const std::string& row) {
  drop_conclusion();
  const std::string line = with_digest(row);
  lines_[key] = line;
  if (!prefix_) {  // points were added in front of known rows: nothing known may be lost to a kill
    write_atomically(path_, {in_point_order()});
    return;
  }
  append_text(path_, line + "\n", true);
}

bool has_rows(const std::string& folder) {
  return std::filesystem::is_directory(folder) && !rows_files(folder).empty();
}

std::set<std::string> stored_keys(const std::string& folder) {
  std::set<std::string> keys;
  if (!std::filesystem::is_directory(folder)) return keys;
  for (const auto& [index, path] : rows_files(folder)) {
    const std::vector<std::string> lines = complete_lines(path);
    const bool carried = carry_digests(lines);
    for (const std::string& line : lines) {
      try {
        const Json row = parse_identity(line, path, 0);
        require_digest(row, carried, path, 0);
        keys.insert(row["key"]);
      } catch (const Error&) {
      }
    }
  }
  return keys;
}

std::vector<Row> merge_rows(const std::string& folder) {
  const std::map<int, std::string> files = rows_files(folder);
  if (files.empty()) throw Error(folder + ": expected rows.jsonl or rows.<i>.jsonl in it");
  std::vector<std::vector<Row>> shards;
  std::map<std::string, std::string> seen;
  std::map<std::string, std::int64_t> predictions;  // by numerics version
  for (const auto& [index, path] : files) {
    shards.emplace_back();
    const std::vector<std::string> lines = complete_lines(path);
    const bool carried = carry_digests(lines);
    std::size_t number = 0;
    for (const std::string& line : lines) {
      Row row;
      try {
        const Json json = parse_identity(line, path, ++number);
        row = checked_row(json, path, number);
        require_digest(json, carried, path, number);
      } catch (const DamagedRow& error) {
        throw Error(error.what() +
                    std::string("; repeat the run that wrote it to compute it again"));
      }
      if (const std::optional<std::int64_t> made = prediction_version(row)) {
        const std::int64_t first = predictions.emplace(row.version, *made).first->second;
        if (*made != first) {
          throw Error(
              fmt::format("{}: line {}: a row whose predictions have version {}, beside rows "
                          "with version {}; compute them again with --fresh",
                          path, number, *made, first));
        }
      }
      const auto [at, added] = seen.emplace(row.key, line);
      if (added) {
        shards.back().push_back(std::move(row));
      } else if (at->second != line) {
        throw Error(fmt::format("{}: line {}: differs from another row with the same key {}", path,
                                number, at->first.substr(0, 12)));
      }
    }
  }
  // Point p stands in shard p mod n at place p / n.
  std::vector<Row> rows;
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
