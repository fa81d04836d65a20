// The forms of vector files beside text: csv, JSON lines, npz, and $readmemh files of ports, also
// with a SystemVerilog package.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "formats/storage/array.hpp"

namespace numemu::oracle {

enum class FileForm : std::uint8_t {
  text,      ///< one line a record, as TestFloat
  csv,       ///< one column an element
  jsonl,     ///< one object a record
  npz,       ///< one array a field
  readmemh,  ///< one file a field, all of its elements one word, element 0 lowest
  sv,        ///< the same, and a package that loads them (sv_package.hpp)
};

/// Throws Error with the nearest known name.
FileForm parse_file_form(std::string_view);

/// What stands before the first record, with its end of a line; of text, csv and jsonl. Every form
/// has header_line(), csv the names of its columns, too.
std::string form_head(FileForm, const Subject&, const Layout&);
/// Appends records; of text, csv and jsonl. Codes are the words of text; the last column is
/// the class.
void append_records(FileForm, const Layout&, const Records&, std::string& text);

/// The head of a $readmemh file, and the words of one field, one a line with its class.
std::string port_head(const Subject&);
void append_port(const Field&, const Records&, int field, std::string& text);

/// Of the array of a field: codes in their containers, two's complement as int8, int16 or int32,
/// else the smallest unsigned integer.
ArrayType array_type_of(const Field&);

/// All records as numpy's np.savez stores them, uncompressed: one array for each field, n or
/// n x count, as arrays of codes are stored (docs/arrays.md), `class` as bytes, and
/// `numemu_vectors`, the header line.
class NpzWriter {
 public:
  NpzWriter(const Subject&, const Layout&);
  void append(const Records&);
  /// The bytes of the file.
  std::string file() const;
  /// Bytes that a record takes.
  static std::int64_t record_bytes(const Layout&);

 private:
  Subject subject_;
  Layout layout_;
  std::vector<std::string> columns_;  ///< the bytes of each field
  std::string classes_;
  std::int64_t n_ = 0;
};

}  // namespace numemu::oracle
