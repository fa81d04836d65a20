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

/// Nothing if the file does not exist.
std::string text_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";
  InputFile file(path);
  return file.read(file.left());
}

/// Complete lines of a file. What follows the last newline is a row that an editor left so, or what
/// a killed program wrote of one: no part of a row is an object.
std::vector<std::string> complete_lines(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = text_of(path);
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  if (at < text.size() && Json::parse_or_null(text.substr(at)).is_object())
    lines.push_back(text.substr(at));
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

constexpr const char* kRows = "rows";
constexpr int kWhole = -1;

/// kWhole for <stem>.jsonl, i for <stem>.<i>.jsonl, nullopt for the name of any other file.
std::optional<int> shard_index(std::string_view name, std::string_view stem) {
  constexpr std::string_view kTail = ".jsonl";
  if (!name.starts_with(stem) || !name.ends_with(kTail) || name.size() < stem.size() + kTail.size())
    return std::nullopt;
  name = name.substr(stem.size(), name.size() - stem.size() - kTail.size());
  if (name.empty()) return kWhole;
  return name[0] == '.' ? digits(name.substr(1)) : std::nullopt;
}

std::string file_name(std::string_view stem, const Shard& shard) {
  return shard.whole() ? fmt::format("{}.jsonl", stem)
                       : fmt::format("{}.{}.jsonl", stem, shard.index);
}

/// The files of rows in a folder, by index.
std::map<int, std::string> rows_files(const std::string& folder, std::string_view stem = kRows) {
  std::map<int, std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (const auto index = shard_index(name, stem)) files[*index] = folder + "/" + name;
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

std::string at_line(const std::string& path, std::size_t number) {
  return fmt::format("{}: line {}", path, number);
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

}  // namespace

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
    : RowStore(nullptr, folder, shard, std::move(keys), existing) {}

RowStore::RowStore(const RowFile& file, const std::string& folder, std::vector<std::string> keys,
                   Existing existing, const Shard& shard)
    : RowStore(&file, folder, shard, std::move(keys), existing) {}

RowStore::RowStore(const RowFile* file, const std::string& folder, const Shard& shard,
                   std::vector<std::string> keys, Existing existing)
    : file_(file != nullptr ? std::optional(*file) : std::nullopt),
      folder_(folder),
      stem_(file != nullptr ? file->stem : kRows),
      shard_(shard),
      path_(folder + "/" + file_name(stem_, shard)),
      keys_(std::move(keys)),
      wanted_(keys_.begin(), keys_.end()) {
  make_folder(folder);
  if (shard.whole())
    lock_ = std::make_unique<FileLock>(lock_path(path_), busy(path_, file ? file->writer : kSweep));
  settle_shards(existing);
  if (existing != Existing::fresh) {
    read_existing(path_, existing);
    for (const std::string& taken : taken_over_) read_existing(taken, existing);
    look_again();
  }
  begin();
  for (const std::string& taken : taken_over_) {
    std::error_code error;
    std::filesystem::remove(taken, error);
    std::filesystem::remove(lock_path(taken), error);
  }
}

RowStore::RowStore(RowStore&&) noexcept = default;
RowStore::~RowStore() = default;

void RowStore::begin() {
  bool gap = false;
  for (const std::string& key : keys_) {
    if (other_.contains(key)) continue;
    gap = gap || !lines_.contains(key);
    prefix_ = prefix_ && !(gap && lines_.contains(key));
  }
  if (file_ && !shard_.whole()) prefix_ = true;  // the whole puts them in order
  kept_ = lines_.size() + other_.size();
  // Another order of the same rows leaves what was concluded from them.
  const std::vector<std::string> lines = complete_lines(path_);
  std::set<std::string> rows(old_lines_.begin(), old_lines_.end());
  for (const auto& [key, line] : lines_) rows.insert(line);
  if (rows != std::set<std::string>(lines.begin(), lines.end())) drop_conclusion();
  // A shard's file that is right stays in place: a second writer may be adding to it.
  const std::string text = in_point_order();
  std::error_code error;
  if (shard_.whole() || !std::filesystem::exists(path_, error) || text_of(path_) != text)
    write_atomically(path_, {text});
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

/// Rows of different numbers of shards in one folder would be merged out of order.
void RowStore::settle_shards(Existing existing) {
  for (const auto& [index, path] : rows_files(folder_, stem_)) {
    const bool fresh = existing == Existing::fresh;
    if (index == kWhole) {  // a shard reads its rows
      if (shard_.whole() || !fresh) continue;
      const FileLock other(lock_path(path), busy(path, kSweep));
      std::filesystem::remove(path);
      continue;
    }
    if (shard_.whole()) {
      if (!fresh) taken_over_.push_back(path);
      if (fresh) std::filesystem::remove(path);
      continue;
    }
    const int noted = noted_number(lock_path(path));
    if (index < shard_.count && (noted == 0 || noted == shard_.count)) continue;
    if (!fresh)
      throw Error(fmt::format("{}: was written with another --shard; use --fresh or {}", path,
                              another_out()));
    if (path != path_) std::filesystem::remove(path);
  }
  note_number(lock_path(path_), shard_.count);
}

void RowStore::read_existing(const std::string& path, Existing existing) {
  const std::vector<std::string> lines = complete_lines(path);
  const bool carried = carry_digests(lines);
  std::size_t number = 0;
  for (const std::string& line : lines) {
    try {
      const Json row = parse_identity(line, path, ++number);
      require_digest(row, carried, path, number);
      take_row(row, row.contains("digest") ? line : with_digest(line), path, number, existing);
    } catch (const DamagedRow& error) {
      damaged_.push_back(error.what() + std::string("; dropped, will be computed again"));
    }
  }
}

void RowStore::look_again() {
  if (shard_.whole()) return;
  for (const auto& [index, path] : rows_files(folder_, stem_)) {
    // Other shards of a sweep have other points.
    if (index == shard_.index || (!file_ && index != kWhole)) continue;
    for (const std::string& line : complete_lines(path)) {
      try {
        const Json row = parse_identity(line, path, 0);
        const std::string key = row["key"];
        if (!row.contains("digest") || row["version"] != kNumericsVersion ||
            !wanted_.contains(key) || lines_.contains(key))
          continue;
        if (!file_) require_losses_of(row, path, 0);
        other_.emplace(key, line);
      } catch (const Error&) {  // the whole tells of it
      }
    }
  }
}

void RowStore::finish() {
  if (shard_.whole()) return;
  std::string lost;
  const std::vector<std::string> stored = complete_lines(path_);
  const std::set<std::string> there(stored.begin(), stored.end());
  for (const auto& [key, line] : lines_) {
    if (!there.contains(line)) lost += line + "\n";
  }
  if (!lost.empty()) append_text(path_, lost, true);
}

void RowStore::require_losses_of(const Json& row, const std::string& path,
                                 std::size_t number) const {
  if (!row.contains("losses")) return;
  try {
    read_losses(folder_, read_row(row));
  } catch (const Error& error) {
    throw DamagedRow(
        fmt::format("{}: a row without its losses ({})", at_line(path, number), error.what()));
  }
}

/// A row that was taken over before a kill is there twice.
void RowStore::keep_old(const std::string& line) {
  if (std::ranges::find(old_lines_, line) == old_lines_.end()) old_lines_.push_back(line);
}

std::string RowStore::another_out() const { return "--out " + fresh_folder(folder_); }

void RowStore::take_row(const Json& row, const std::string& line, const std::string& path,
                        std::size_t number, Existing existing) {
  const std::string where = at_line(path, number), key = row["key"];
  if (row["version"] != kNumericsVersion) {
    if (existing != Existing::keep_old) {
      throw Error(fmt::format(
          "{}: a row of numerics version {}, this program is {}; use --keep-old, --fresh or {}",
          where, row["version"].get<std::string>(), kNumericsVersion, another_out()));
    }
    keep_old(line);
  } else if (wanted_.contains(key)) {
    if (!file_) require_losses_of(row, path, number);
    lines_[key] = line;
  } else if (file_) {
    keep_old(line);
  } else {
    throw Error(
        fmt::format("{}: a row from another sweep; use --fresh or {}", where, another_out()));
  }
  if (file_) {
    if (!file_->holds(row))
      throw Error(fmt::format("{}: expected a row with {}", where, file_->needs));
    return;
  }
  const Row checked = checked_row(row, path, number);
  if (const std::optional<std::int64_t> made = prediction_version(checked);
      made && checked.version == kNumericsVersion && *made != kPredictionVersion) {
    throw Error(fmt::format(
        "{}: a row whose predictions have version {}, this program's have {}; use --fresh or {}",
        where, *made, kPredictionVersion, another_out()));
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
  // Rows of the whole come first; of the others point p stands in shard p mod n at place p / n.
  std::vector<Row> rows;
  if (files.begin()->first == kWhole) {
    rows = std::move(shards.front());
    shards.erase(shards.begin());
  }
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
