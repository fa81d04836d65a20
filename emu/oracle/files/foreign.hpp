// Lines that another program wrote: which fields they have, and their place in a record.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/files/text.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"

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

/// Which end of a word that holds several codes has element 0.
enum class ElementOrder : std::uint8_t { lsb, msb };

/// The fields of a foreign line in their order, "NAME:[COUNT x]FORMAT" with commas in between:
/// "a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32". Names are those of layout_of(), and `skip` for digits of
/// no interest. Formats: any name of a format, `int32` (`s32`), or `N` for N bits without a
/// meaning. Throws Error "--fields: ..." for wrong names, counts and formats.
Layout parse_fields(std::string_view text);

/// Reads foreign lines into records of a subject. A line has either one word for each field, its
/// codes side by side, or one word for each code; the first line of the file decides.
class ForeignReader {
 public:
  /// Throws Error naming the field where the two layouts contradict each other: a field of another
  /// count or width, an operand or the result missing. Without c, it is +0.
  ForeignReader(Layout foreign, ElementOrder, const Subject&, std::string name, ByteReader);
  /// As TextReader::read(), records of layout_of() the subject; fields that lines do not have are
  /// zeros.
  bool read(std::int64_t most, Records&);
  bool has(std::string_view field) const { return find_field(foreign_, field) >= 0; }

 private:
  void decide(const std::string& name, ByteReader bytes);

  Layout foreign_, layout_;
  ElementOrder order_;
  std::vector<int> source_;  ///< of each field of layout_ the foreign one, or -1
  std::unique_ptr<TextReader> text_;
  Records lines_;
};

}  // namespace numemu::oracle
