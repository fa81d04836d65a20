// Rows on disk: appended in point order, one JSON line each; a file cut anywhere resumes to the
// same bytes.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "experiments/engine/row.hpp"
#include "formats/storage/file_lock.hpp"

namespace numemu::experiments {

/// Shard `index` of `count`: the points whose number is index modulo count.
struct Shard {
  int index = 0, count = 1;
  /// "rows.jsonl", or "rows.<i>.jsonl" when there are several.
  std::string rows_file() const;
};
/// "0/2": digits, a slash, digits; throws Error.
Shard parse_shard(const std::string& text);

/// What to do with rows that are already there.
enum class Existing { resume, fresh, keep_old };

/// A file of rows that no shards split, and what its rows hold beside key and version.
struct RowFile {
  std::string name;                ///< in its folder
  std::string writer;              ///< "another <writer> is writing to it"
  bool (*holds)(const Json& row);  ///< whether a row has what its reader needs
  std::string needs;               ///< what `holds` asks for, in words
};

class RowStore {
 public:
  /// Opens `folder`/rows file for the points with these keys, in order. Complete lines that are
  /// among the keys are kept (and put in point order); a half-written last line is dropped, and so
  /// are damaged rows (DamagedRow): one without a digest among rows that carry theirs is one, and
  /// one whose file of losses (losses_file.hpp) is missing or damaged. Rows
  /// of a file without any get theirs. Throws Error for rows of another numerics version (unless
  /// keep_old), with predictions of another version, of another sweep or without a key that reports
  /// need, for rows files of another number of shards, and when another process holds the file.
  /// With Existing::fresh rows files of another number of shards are removed; those of other shards
  /// of the same number stay.
  RowStore(const std::string& folder, const Shard&, std::vector<std::string> keys, Existing);
  /// The same for another file. Rows with other keys are kept in front of those with these keys.
  RowStore(const RowFile&, const std::string& folder, std::vector<std::string> keys, Existing);
  ~RowStore();
  RowStore(RowStore&&) noexcept;
  RowStore& operator=(RowStore&&) = delete;

  /// Of its points, in order.
  const std::vector<std::string>& keys() const { return keys_; }
  bool has(const std::string& key) const { return lines_.contains(key); }
  std::size_t kept() const { return kept_; }
  /// The row with this key, which must be there.
  const std::string& line(const std::string& key) const { return lines_.at(key); }
  /// Adds the row of the next missing key, one line of JSON, with its digest, durably, at its place
  /// in point order. The first row added, or dropped when the file was opened, removes the folder's
  /// experiment.json and reports, which concluded from other rows.
  void append(const std::string& key, const std::string& row);
  /// A sentence for each damaged row that was dropped, naming file and line.
  const std::vector<std::string>& damaged() const { return damaged_; }
  const std::string& path() const { return path_; }

 private:
  void lock(const std::string& folder, const std::string& writer);
  void settle_shards(const std::string& folder, const Shard&, Existing);
  void read_existing(Existing, const RowFile*);
  /// `line` is that of the row, with its digest.
  void take_row(const Json& row, const std::string& line, std::size_t number,
                const std::set<std::string>& wanted, Existing, const RowFile*);
  /// Throws DamagedRow where the file of losses that the row names is not as it was written.
  void require_losses_of(const Json& row, std::size_t number) const;
  void begin();
  /// Removes what an experiment concluded from other rows.
  void drop_conclusion();
  std::string in_point_order() const;
  std::string path_;
  std::vector<std::string> keys_;
  std::map<std::string, std::string> lines_;
  std::vector<std::string> damaged_;
  std::vector<std::string> old_lines_;  ///< rows of other numerics versions or keys, kept in front
  std::size_t kept_ = 0;
  bool dropped_ = false;
  bool prefix_ =
      true;  ///< known rows are the first points, so that a new one can simply be appended
  std::unique_ptr<FileLock> lock_;
};

/// Whether the folder holds rows.jsonl or a rows.<i>.jsonl.
bool has_rows(const std::string& folder);

/// The keys of the rows in a folder, of any shard; damaged rows and a folder that is not there have
/// none.
std::set<std::string> stored_keys(const std::string& folder);

/// Every row of a folder, shards merged in point order; duplicates that differ, predictions of
/// different versions, damaged rows, rows without a key that reports need and a folder without rows
/// are Errors naming file and line. A half-written last line is ignored.
std::vector<Row> merge_rows(const std::string& folder);

}  // namespace numemu::experiments
