// Records of a vector file in any of its forms.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/units.hpp"
#include "emu/oracle/files/array_reader.hpp"
#include "emu/oracle/files/foreign.hpp"
#include "emu/oracle/files/text.hpp"
#include "formats/storage/byte_stream.hpp"

namespace numemu::api {

struct VectorOptions;

/// A stream of text: gzip or not, with or without a byte-order mark. The stream outlives it.
oracle::ByteReader text_of(ByteStream&);

/// Text, csv or JSON lines, gzip or not; NAME.npz; or the $readmemh files PREFIX.a.hex,
/// PREFIX.b.hex and so on, by PREFIX or the name of one of them. "-" is standard input.
class RecordFile {
 public:
  /// Throws Error naming the file, as the reader of its form does.
  explicit RecordFile(const std::string& in);
  RecordFile(const RecordFile&) = delete;

  const std::string& name() const { return name_; }
  /// The line that says what the records are about; empty: there is none.
  const std::string& header() const;
  /// Products of a record, where the file's arrays tell; else 0.
  std::int64_t depth() const { return arrays_ ? arrays_->depth() : 0; }
  /// What Records::line counts: "line", or "record" from 0.
  const char* place() const { return arrays_ ? "record" : "line"; }
  bool read(const oracle::Layout&, std::int64_t most, oracle::Records&);
  /// Whether there are flags; after the first read().
  bool has_optional() const;
  /// Bytes of the text, 0 where that is not known, and how many of them are read.
  std::int64_t size() const;
  std::int64_t consumed() const;

 private:
  std::string name_;
  std::vector<std::unique_ptr<ByteStream>> streams_;
  std::optional<oracle::TextReader> text_;
  std::optional<oracle::ArrayReader> arrays_;
  std::optional<oracle::PortReader> ports_;
};

/// Whether the name is that of a form with several files or arrays, whose fields have names.
bool is_form_of_fields(const std::string& in);

/// The unit that the first line of a file of vectors describes; null where it does not. `file` is
/// what an Error calls the file.
UnitPtr unit_described(const std::string& file, std::string_view header);

/// The unit or the operation of the options; `own` becomes the unit. Throws Error naming the
/// option.
oracle::Subject subject_of(const VectorOptions&, UnitPtr& own);

}  // namespace numemu::api
