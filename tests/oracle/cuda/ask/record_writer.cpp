#include "tests/oracle/cuda/ask/record_writer.hpp"

#include <algorithm>
#include <utility>

#include "emu/oracle/recording/data.hpp"
#include "formats/error.hpp"
#include "tests/oracle/cuda/ask/written_file.hpp"

namespace numemu::oracle::recording {
namespace {

constexpr const char* kIndexHeader =
    "file\tunit\tkind\tinstr\tK\ta\tb\tc\td\tscale\tblock\tnscale\tcount\tsource\tkept\tnmeta";
constexpr const char* kProbesHeader = "file\trecord\tid\tquestion";

void append(std::string& bytes, const std::vector<std::uint8_t>& array, std::size_t line,
            std::size_t length) {
  const auto from = array.begin() + static_cast<std::ptrdiff_t>(line * length);
  bytes.append(from, from + static_cast<std::ptrdiff_t>(length));
}

std::vector<std::string> cells(const IndexRow& row) {
  const Instruction& i = *row.instruction;
  const auto text = [](int n) { return std::to_string(n); };
  return {row.file,        row.unit,
          name(i.kind),    name(i),
          text(i.k),       info(i.a).name,
          info(i.b).name,  info(i.c).name,
          info(i.d).name,  i.block == 0 ? "-" : info(i.scale).name,
          text(i.block),   text(i.scales()),
          text(row.count), row.source,
          text(i.kept()),  text(i.groups())};
}

}  // namespace

void append_record(std::string& bytes, const Batch& batch, int tile, int row, int column) {
  const Instruction& i = *batch.instruction;
  const TileBytes of_tile = tile_bytes(i);
  const auto m = static_cast<std::size_t>(i.m), n = static_cast<std::size_t>(i.n);
  const auto t = static_cast<std::size_t>(tile);
  const std::size_t line = t * m + static_cast<std::size_t>(row);
  const std::size_t at = t * n + static_cast<std::size_t>(column);
  const std::size_t dot = line * n + static_cast<std::size_t>(column);
  append(bytes, batch.a, line, of_tile.a / m);
  append(bytes, batch.b, at, of_tile.b / n);
  append(bytes, batch.c, dot, of_tile.c / (m * n));
  append(bytes, batch.scale_a, line, of_tile.scale_a / m);
  append(bytes, batch.scale_b, at, of_tile.scale_b / n);
  append(bytes, batch.metadata, line, of_tile.metadata / m);
  append(bytes, batch.d, dot, of_tile.d / (m * n));
}

int record_count(const Instruction& i) {
  return static_cast<int>(kRecordBytes / record_bytes(i)) / kDataKinds * kDataKinds;
}

DotPlace record_place(const Instruction& i, std::int64_t tile) {
  // Through the rows kind by kind; each time round, columns are shifted by one against rows.
  const std::int64_t turns = record_count(i) / kDataKinds;
  const std::int64_t step = tile % kDataKinds * turns + tile / kDataKinds;
  return {static_cast<int>(step % i.m), static_cast<int>((step + step / i.m) % i.n)};
}

void append_records(std::string& bytes, const Batch& batch, std::int64_t first_tile) {
  const std::int64_t end =
      std::min<std::int64_t>(first_tile + batch.count, record_count(*batch.instruction));
  for (std::int64_t tile = first_tile; tile < end; ++tile) {
    const DotPlace at = record_place(*batch.instruction, tile);
    append_record(bytes, batch, static_cast<int>(tile - first_tile), at.row, at.column);
  }
}

std::string file_stem(const Instruction& i) {
  std::string stem = std::string(name(i.kind)) + "__" + name(i);
  std::replace(stem.begin(), stem.end(), '.', '_');
  return stem;
}

RecordWriter::RecordWriter(std::string folder, std::string unit, std::string source)
    : folder_(std::move(folder)), unit_(std::move(unit)), source_(std::move(source)) {}

void RecordWriter::add_file(const std::string& file, const Instruction& i,
                            const std::string& records) {
  if (records.size() % record_bytes(i) != 0)
    throw Error(folder_ + "/" + file + ": expected records of " + std::to_string(record_bytes(i)) +
                " bytes, got " + std::to_string(records.size()) + " bytes");
  write_whole_file(folder_ + "/" + file, records);
  index_.push_back({file, unit_, &i, static_cast<int>(records.size() / record_bytes(i)), source_});
}

void RecordWriter::add_records(const Instruction& i, const std::string& records) {
  add_file("records/" + file_stem(i) + ".bin", i, records);
}

void RecordWriter::add_probes(const std::vector<Probe>& probes, const Batch& answered) {
  const std::string file = "probes/" + file_stem(*answered.instruction) + ".bin";
  if (static_cast<std::size_t>(answered.count) != probes.size())
    throw Error(folder_ + "/" + file + ": expected " + std::to_string(probes.size()) +
                " tiles, got " + std::to_string(answered.count));
  std::string records;
  for (int p = 0; p < answered.count; ++p) {
    const Probe& probe = probes[static_cast<std::size_t>(p)];
    append_record(records, answered, p, 0, 0);
    probes_.push_back({file, p, probe.id, probe.question});
  }
  add_file(file, *answered.instruction, records);
}

void RecordWriter::finish() const {
  std::string index = std::string(kIndexHeader) + '\n', probes = std::string(kProbesHeader) + '\n';
  for (const IndexRow& row : index_) index += table_line(cells(row));
  for (const ProbeRow& row : probes_)
    probes += table_line({row.file, std::to_string(row.record), row.id, row.question});
  write_whole_file(folder_ + "/probes.tsv", probes);
  write_whole_file(folder_ + "/index.tsv", index);
}

}  // namespace numemu::oracle::recording
