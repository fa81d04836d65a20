// Records of one instruction: read from a folder with an index, checked, handed out dot by dot.
#pragma once
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/oracle/cuda/replay/rule.hpp"

namespace numemu::oracle::recording::replay {

/// Something in an index or a record is not as it must be; the text names file and position.
struct BadInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Record: a[kept] b[K] c scale_a[nscale] scale_b[nscale] metadata[nmeta] d.
struct RecordFile {
  std::string file;    ///< as the index names it
  std::string unit;    ///< the GPU or its model
  std::string source;  ///< where the outputs come from
  const Instruction* instruction = nullptr;
  std::size_t count = 0;
  std::vector<std::uint8_t> bytes;
  std::map<std::size_t, std::string> probes;  ///< the probe of a record: "Z1 (zero-exponent)"

  std::size_t record_bytes() const;
  Dot dot(std::size_t record) const;
  std::uint64_t d(std::size_t record) const;
};

/// A row of an index, or a reason why it is not replayed.
struct Skipped {
  std::string file, reason;
};

struct Records {
  std::vector<RecordFile> files;
  std::vector<Skipped> skipped;
};

/// The rows of `index`, whose file names are relative to `folder`. Rows of other kinds than matrix
/// instructions of NVIDIA are skipped. Throws BadInput.
Records read_records(const std::string& folder, const std::string& index);

/// Names the records that are probes, from a table of file, record, id and question (the files as
/// in `index`).
void name_probes(const std::string& table, Records&);

/// Throws BadInput where a code has bits beyond its element, metadata chooses nothing, or the size
/// is not that of `count` records.
void check(const RecordFile&);

/// The whole file; throws BadInput where it cannot be read.
std::vector<std::uint8_t> read_bytes(const std::string& path);

}  // namespace numemu::oracle::recording::replay
