// Which dots of a run become records, and the files and tables that keep them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/oracle/recording/batch.hpp"
#include "emu/oracle/recording/probe.hpp"
#include "emu/oracle/recording/records.hpp"

namespace numemu::oracle::recording {

/// Appends the record of one dot.
void append_record(std::string&, const Batch&, int tile, int row, int column);

/// Which dots of the large run become records: one of each of its first tiles, so that every kind
/// of data has as many; rows and columns take turns.
constexpr std::size_t kRecordBytes = 21000;  ///< of an instruction, at most
struct DotPlace {
  int row, column;
};
int record_count(const Instruction&);
/// tile: below record_count().
DotPlace record_place(const Instruction&, std::int64_t tile);
/// Appends the records that are among the tiles of a batch that begins at first_tile.
void append_records(std::string&, const Batch&, std::int64_t first_tile);

/// "wgmma__m64n8k32_f32_e4m3_e4m3"
std::string file_stem(const Instruction&);

/// A row of index.tsv; the columns are those of the golden index and two more.
struct IndexRow {
  std::string file;  ///< within the folder
  std::string unit;  ///< the chip: "H100"
  const Instruction* instruction;
  int count;
  std::string source;
};

/// A row of probes.tsv: the probe of record `record` of a file.
struct ProbeRow {
  std::string file;
  int record;
  std::string id, question;
};

/// Writes FOLDER/records/*.bin and FOLDER/probes/*.bin as they come, and the tables at the end.
class RecordWriter {
 public:
  RecordWriter(std::string folder, std::string unit, std::string source);
  /// Records as append_records() made them.
  void add_records(const Instruction&, const std::string& records);
  /// Tile p of the batch holds the result of probe p (tiles_of() in probe_tiles.hpp).
  void add_probes(const std::vector<Probe>&, const Batch& answered);
  /// FOLDER/index.tsv and FOLDER/probes.tsv.
  void finish() const;

 private:
  void add_file(const std::string& file, const Instruction&, const std::string& records);

  std::string folder_, unit_, source_;
  std::vector<IndexRow> index_;
  std::vector<ProbeRow> probes_;
};

}  // namespace numemu::oracle::recording
