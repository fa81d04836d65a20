// Lines that another program wrote: which fields they have, and their place in a record.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/oracle/layout.hpp"
#include "emu/oracle/record.hpp"
#include "emu/oracle/subject.hpp"
#include "emu/oracle/text_reader.hpp"

namespace numemu::oracle {

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
