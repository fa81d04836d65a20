// Recorded answers of GPUs: the files of a folder, checked, as dots.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/recording/instruction.hpp"
#include "emu/unit/description.hpp"

namespace numemu::oracle {

/// Records of one instruction: a[kept] b[K] c scale_a[nscale] scale_b[nscale] metadata[nmeta] d.
struct RecordedFile {
  std::string file;    ///< as the index names it
  std::string unit;    ///< the chip, "H100"; or FILE.json in the folder, the description of a unit
  std::string source;  ///< where the results come from
  const recording::Instruction* instruction = nullptr;
  std::optional<unit::UnitDescription> described;  ///< of FILE.json
  std::int64_t count = 0;
  std::vector<std::uint8_t> bytes;
  std::map<std::int64_t, std::string> probes;  ///< of a record: "Z1"

  /// All of them, fields as in container_layout().
  Records records() const;
};

struct SkippedFile {
  std::string file, reason;
};

struct RecordFolder {
  std::vector<RecordedFile> files;
  std::vector<SkippedFile> skipped;  ///< kinds that are no dots of an instruction of NVIDIA
};

/// Whether a folder holds an index of records, published outputs or conversions.
bool is_record_folder(const std::string& folder);

/// The files of index.tsv, with the names of their probes (probes.tsv); of index_mmasim.tsv; and of
/// index_hw_leeds.tsv, whose rows name formats in place of an instruction. Only files whose kind,
/// instruction or name holds `only`. Throws Error naming file and line, or record.
RecordFolder read_record_folder(const std::string& folder, const std::string& only = "");

/// A row of a table of tab-separated columns whose first line names them.
struct TableRow {
  std::string where;  ///< "PATH line N", for messages
  std::map<std::string, std::string> cells;

  bool has(const std::string& column) const { return cells.contains(column); }
  /// Throws Error where there is no such column.
  const std::string& text(const std::string& column) const;
  /// Decimal digits, below 10^9. Throws Error.
  std::int64_t number(const std::string& column) const;
  /// Throws Error where the column holds another text.
  void expect(const std::string& column, const std::string& expected) const;
};
std::vector<TableRow> read_table_rows(const std::string& path);

/// The file of a row, below the folder. Throws Error for other paths.
std::string path_below(const std::string& folder, const TableRow&, const std::string& file);
/// A regular file of so many bytes. Throws Error.
std::vector<std::uint8_t> read_exactly(const std::string& path, std::int64_t bytes,
                                       const std::string& what);

}  // namespace numemu::oracle
