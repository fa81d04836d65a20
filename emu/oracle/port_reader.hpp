// Records of $readmemh files, one file a field, all elements of a record in one word.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/record.hpp"
#include "emu/oracle/text_reader.hpp"

namespace numemu::oracle {

/// "PREFIX.a.hex"
std::string port_file(std::string_view prefix, std::string_view field);
/// What stands before ".FIELD.hex" in such a name, for a field of any layout; empty: no such name.
std::string_view port_prefix(std::string_view file);

/// A port's file; null where there is none.
using PortOpener = std::function<ByteReader(const std::string& file)>;

/// Lines as TextReader has them, one word each, the class behind //. Every field has its file,
/// except that C of a unit is +0 without PREFIX.c.hex and flags may be left out. Classes are those
/// of the first field.
class PortReader {
 public:
  /// Opens the first field, PREFIX.a.hex or PREFIX.in.hex. Throws Error naming them.
  PortReader(std::string prefix, PortOpener);

  /// The first line of the first field where it is a header, else empty.
  const std::string& header() const { return inputs_->header(); }

  /// As TextReader::read(). Throws Error naming the file that is missing, has more or fewer
  /// records than the first, or a first line that contradicts the first's.
  bool read(const Layout&, std::int64_t most, Records&);
  bool has_optional() const;

 private:
  std::unique_ptr<TextReader> open(const std::string& field);
  void open_all(const Layout&);

  std::string prefix_, first_;  ///< first_: the field of inputs_
  PortOpener opener_;
  std::unique_ptr<TextReader> inputs_;
  struct Port {
    std::string file;
    Layout layout;  ///< the one field, packed
    TextReader* text = nullptr;
    std::unique_ptr<TextReader> own;
    Records records;
  };
  std::vector<Port> ports_;  ///< of each field of the layout; text is null where there is no file
};

}  // namespace numemu::oracle
