// Rows on disk: appended in point order, one JSON line each; a file cut anywhere resumes to the
// same bytes.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/engine/row.hpp"
#include "formats/storage/file_lock.hpp"

namespace numemu::experiments {

/// Shard `index` of `count`: the points whose number is index modulo count.
struct Shard {
  int index = 0, count = 1;
  bool whole() const { return count == 1; }
};
/// "0/2": digits, a slash, digits; throws Error.
Shard parse_shard(const std::string& text);

/// What to do with rows that are already there.
enum class Existing { resume, fresh, keep_old };

/// A file of rows that are no sweep's, and what its rows hold beside key and version.
struct RowFile {
  std::string stem;    ///< of "<stem>.jsonl" in its folder, "<stem>.<i>.jsonl" of shards
  std::string writer;  ///< "another <writer> is writing to it"
  bool (*holds)(const Json& row);  ///< whether a row has what its reader needs
  std::string needs;               ///< what `holds` asks for, in words
};

/// The rows of one writer. The whole is locked where locks hold (file_lock.hpp). A shard takes no
/// lock, since shards are written on machines that may die or not see each other's locks, and needs
/// none: the digest of every row finds what two writers of one shard damaged, and their rows are
/// equal. Two writers cost time, never a row.
class RowStore {
 public:
  /// Opens `folder`/rows file for the points with these keys, in order. Complete lines that are
  /// among the keys are kept (and put in point order); a half-written last line is dropped, and so
  /// are damaged rows (DamagedRow): one without a digest among rows that carry theirs is one, and
  /// one whose file of losses (losses_file.hpp) is missing or damaged. Rows
  /// of a file without any get theirs. The whole takes over the rows of all shards in the folder,
  /// whose files it removes; for a shard the rows of the whole are present. Throws Error for rows
  /// of another numerics version (unless keep_old), with predictions of another version, of another
  /// sweep or without a key that reports need, for a shard beside those of another number, and when
  /// another process holds the lock. With Existing::fresh the whole removes the files of shards,
  /// and a shard those of other numbers; those of other shards of the same number stay.
  RowStore(const std::string& folder, const Shard&, std::vector<std::string> keys, Existing);
  /// A store in another file. Rows with other keys are kept in front of those with these keys; a
  /// shard has no keys of its own: those that it appends may be any.
  RowStore(const RowFile&, const std::string& folder, std::vector<std::string> keys, Existing,
           const Shard& = {});
  ~RowStore();
  RowStore(RowStore&&) noexcept;
  RowStore& operator=(RowStore&&) = delete;

  /// Of its points, in order.
  const std::vector<std::string>& keys() const { return keys_; }
  bool has(const std::string& key) const { return lines_.contains(key) || other_.contains(key); }
  std::size_t kept() const { return kept_; }
  /// The row with this key, which must be there.
  const std::string& line(const std::string& key) const {
    const auto own = lines_.find(key);
    return own != lines_.end() ? own->second : other_.at(key);
  }
  /// Adds the row of the next missing key, one line of JSON, with its digest, durably, at its place
  /// in point order. The first row added, or dropped when the file was opened, removes the folder's
  /// experiment.json and reports, which concluded from other rows.
  void append(const std::string& key, const std::string& row);
  /// Of a shard: learns what other writers have stored by now.
  void look_again();
  /// Of a shard, at its end: writes again what a second writer's file lost.
  void finish();
  /// A sentence for each damaged row that was dropped, naming file and line.
  const std::vector<std::string>& damaged() const { return damaged_; }
  const std::string& path() const { return path_; }

 private:
  RowStore(const RowFile*, const std::string& folder, const Shard&, std::vector<std::string> keys,
           Existing);
  void settle_shards(Existing);
  void read_existing(const std::string& path, Existing);
  /// `line` is that of the row, with its digest.
  void take_row(const Json& row, const std::string& line, const std::string& path,
                std::size_t number, Existing);
  void keep_old(const std::string& line);
  /// Throws DamagedRow where the file of losses that the row names is not as it was written.
  void require_losses_of(const Json& row, const std::string& path, std::size_t number) const;
  void begin();
  /// Removes what an experiment concluded from other rows.
  void drop_conclusion();
  std::string in_point_order() const;
  std::string another_out() const;
  std::optional<RowFile> file_;  ///< none: rows of a sweep
  std::string folder_, stem_;
  Shard shard_;
  std::string path_;
  std::vector<std::string> keys_;
  std::set<std::string> wanted_;
  std::map<std::string, std::string> lines_, other_;  ///< of this file; of a shard: of others
  std::vector<std::string> damaged_;
  std::vector<std::string> old_lines_;   ///< rows of other numerics versions or keys, kept in front
  std::vector<std::string> taken_over_;  ///< files of shards whose rows are in this one
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
