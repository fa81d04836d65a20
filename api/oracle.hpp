// numemu as the oracle of machines: test vectors, answers to lines of operands, results made
// elsewhere held against those that an operation or a unit must give, and the rule of an unknown
// unit.
//
// All functions throw numemu::Error: one line that names the file with its line, the array or the
// option, and what was expected.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/units.hpp"
#include "emu/oracle/explain.hpp"
#include "emu/oracle/files/file_forms.hpp"
#include "emu/oracle/files/foreign.hpp"
#include "emu/oracle/files/text.hpp"
#include "emu/oracle/generator.hpp"
#include "emu/oracle/identify/identify.hpp"
#include "emu/oracle/identify/summation_tree.hpp"
#include "emu/oracle/judge.hpp"
#include "emu/oracle/replay/conversion_judge.hpp"
#include "emu/oracle/replay/record_judge.hpp"
#include "emu/oracle/rule.hpp"

namespace numemu::api {

/// Of a unit, or of an operation; empty texts say nothing.
struct VectorOptions {
  std::string unit = {}, format_a = {}, format_b = {};  ///< formats where the unit takes any
  UnitPtr opened = {};  ///< a unit that has no name, in place of `unit`
  std::string op = {};  ///< a row of emu/oracle/operation.hpp: exact, rounded once
  std::string format = {}, from = {}, to = {}, rounding = {}, overflow = {};  ///< of the operation
  std::optional<std::int64_t> k = {};  ///< products of a dot, or of a unit
  std::string style = "mixed";         ///< emu/oracle/classes.hpp lists them
  std::int64_t level = 1;              ///< 1 or 2: more edges
  std::optional<std::int64_t> n = {};  ///< records; else 10,000 at level 1, a million at level 2
  std::uint64_t seed = 0;
  /// Of an integer unit: results are codes of its sums. Its numbers, none of them files, are those
  /// of every record; those that are empty are drawn. Without bias, which is drawn.
  EpilogueFiles epilogue = {};
};

/// Record i is a function of the options and i, on any machine and for any number of threads.
class Vectors {
 public:
  /// Throws Error naming the option, or where the subject has no records of the style.
  explicit Vectors(const VectorOptions&);
  /// The vectors of a subject, whose unit outlives this.
  explicit Vectors(const oracle::Subject&, std::optional<std::int64_t> n = {});

  std::int64_t size() const { return size_; }
  const oracle::Subject& subject() const { return generator_->subject(); }
  const oracle::Layout& layout() const { return generator_->layout(); }
  /// Records [first, first + records.size).
  void fill(std::int64_t first, oracle::Records& records) const {
    generator_->fill(first, records);
  }

  /// The text of a file, piece by piece; of text, csv and jsonl.
  void write(oracle::FileForm, const std::function<void(const std::string&)>& to,
             const OnProgress& = {}) const;
  /// A file; of readmemh and sv PATH.a.hex, PATH.b.hex and so on, of sv PATH.class.hex and
  /// PATH_pkg.sv, too. Throws Error where it would be too large
  /// to be made in memory.
  void write_file(oracle::FileForm, const std::string& path, const OnProgress& = {}) const;

 private:
  /// Calls `use` with every batch in its order; `make` runs on all threads before.
  template <class Piece>
  void in_order(const std::function<void(oracle::Records&, Piece&)>& make,
                const std::function<void(Piece&)>& use, const OnProgress&) const;

  UnitPtr unit_;
  std::optional<oracle::Generator> generator_;
  std::int64_t size_ = 0;
};

/// Answers lines of operands until they end: a line is a record of these options without its
/// results, and its answer the code of the result, with `flags` also the exceptions. Lines that
/// begin with # are none. Whatever `questions` has given is answered before it is asked for more,
/// in pieces of whole lines, so that it may wait for answers. A first line of `identify` must tell
/// the unit's operands. Throws Error naming `name` and the line, after the answers to those before
/// it.
void serve(const VectorOptions&, bool flags, const std::string& name,
           const oracle::ByteReader& questions,
           const std::function<void(const std::string&)>& answer);

/// Which results are equal, and when to stop.
struct Equality {
  oracle::Tolerance tolerance = {};
  std::int64_t most_mismatches = 0;  ///< 0: never stop
};

/// What a file of records is about, as far as its first line does not say it; an empty text is
/// nothing.
struct RecordsTold {
  std::string unit = {}, format_a = {}, format_b = {};  ///< of a unit
  std::string op = {}, from = {}, to = {}, rounding = {}, overflow = {};
  std::int64_t k = 0;
  std::string fields = {};  ///< of foreign lines: "a:32xe4m3fn,b:32xe4m3fn,c:f32,d:f32"
  oracle::ElementOrder order = oracle::ElementOrder::lsb;  ///< of their words
  /// Results are codes of a unit's sums, of int8 where no format is told.
  std::string requantize = {}, format_d = {};
  std::optional<std::int64_t> low = {}, high = {};
};

/// The judge with everything it has read, the rules that explain what differs, and what a report
/// says about the input.
struct Verified {
  oracle::Judge judge;
  std::string name;                  ///< of the file
  UnitPtr unit;                      ///< of the judge's subject; null: an operation
  std::shared_ptr<Product> product;  ///< with the places of D; null: records of a file
  bool complete = true;              ///< false: the limit of mismatches ended the reading
  const char* place = "line";        ///< what Records::line counts: lines, or records from 0
  oracle::Explanation explanation = {};

  bool holds() const { return judge.judged().holds(); }
};

/// Reads and checks a file in any form that RecordFile reads. Throws Error naming the file and its
/// line, or the option.
Verified verify_records(const std::string& in, const RecordsTold&, const Equality&,
                        const OnProgress& = {});
/// Checks records in memory; with `flags` those are compared, too, and without `explained` no
/// rules are tried. The subject's unit outlives the result.
Verified verify_records(const oracle::Subject&, const oracle::Records&, const Equality&, bool flags,
                        bool explained = true);
/// An epilogue behind an integer unit, and the format of its codes.
struct FollowedBy {
  unit::Epilogue epilogue;
  const Format* format = nullptr;
};
/// Every output of a kernel's D; with an epilogue D are its codes. Rules of arrays read or written
/// in another order are tried, too.
Verified verify_product(std::unique_ptr<Product>, Array d, const std::string& name, const Equality&,
                        const std::optional<FollowedBy>& = {});
Verified verify_product(const std::string& unit, const ProductFiles&, const std::string& d,
                        const Equality&, const EpilogueFiles& = {});

/// Recorded answers of GPUs held against the units of their chips.
struct VerifiedFolder {
  oracle::RecordFolder folder;
  std::vector<oracle::Judgement> judgements;
  std::vector<oracle::ConversionReplay> conversions;

  std::int64_t records() const;
  std::int64_t without_rule() const;
  std::int64_t mismatches() const;
  std::int64_t wrong_conversions() const;
  bool holds() const { return mismatches() == 0 && wrong_conversions() == 0; }
};

/// `only`: part of kind, instruction or file; `unit` in place of those of the chips. Throws Error
/// naming file and line.
std::unique_ptr<VerifiedFolder> verify_folder(const std::string& folder, const std::string& only,
                                              const std::string& unit);
/// Every dot of the large runs computed again; `done` after each run.
std::vector<oracle::HashReplay> verify_hashes(
    const std::string& folder, const std::string& only,
    const std::function<void(const oracle::HashReplay&)>& done);

/// Whether the path is a folder.
bool is_folder(const std::string& path);

/// Seconds of a steady clock.
using Clock = std::function<double()>;

/// Lines go to the device and come from it. Every failure is an Error of one line: the device
/// ended, closed its input, or did not answer in time.
class QuestionDevice {
 public:
  /// Runs `command` by /bin/sh in a process group of its own; its messages stay on stderr. The
  /// whole group ends with this object, and with this process, however that ends.
  static std::unique_ptr<QuestionDevice> of_command(const std::string& command, double timeout,
                                                    Clock);
  /// The device reads our standard output and writes our standard input.
  static std::unique_ptr<QuestionDevice> of_standard_streams(double timeout, Clock);
  ~QuestionDevice();
  QuestionDevice(const QuestionDevice&) = delete;

  /// Writes a whole question; its answer has `timeout` seconds from then on.
  void write(std::string_view text);
  /// Waits for bytes, at most `most`; 0 at the end of the answers. All that follows a question
  /// comes within its time, else an Error is thrown.
  std::size_t read(char* to, std::size_t most);

 private:
  QuestionDevice(int input, int output, int life, int guard, double timeout, Clock clock)
      : clock_(std::move(clock)),
        input_(input),
        output_(output),
        life_(life),
        guard_(guard),
        timeout_(timeout) {}
  /// Waits until the file is ready; false where the time is over.
  bool wait_for(int file, short event) const;

  Clock clock_;
  int input_, output_;  ///< of the device: we write the first and read the second
  int life_;            ///< the guard ends the device once no process holds this
  int guard_;           ///< process that started the device; -1: the device is none of ours
  double timeout_, until_ = 0;
};

/// What the unknown unit takes, in the words of the command; empty and 0: not said.
struct PortsTold {
  std::string like = {};  ///< as open_unit() takes it; the other members go before it
  std::string a = {}, b = {}, c = {}, d = {};  ///< formats; of C and D also int2 to int32
  std::int64_t k = 0;                          ///< elements of B in a dot
  std::string scale = {};                      ///< format of block scales,
  std::int64_t block = 0;                      ///< and elements per scale
  std::string sparsity = {};                   ///< "2:4"
};

/// Its ports, and the descriptions beside the catalogue's that it may have.
struct UnknownUnit {
  oracle::Ports ports;
  std::vector<unit::UnitDescription> units = {};
};
/// Throws Error where the words leave a port open, or no unit can have such ports.
UnknownUnit unknown_unit(const PortsTold&);

/// The finding, and what a report says about where it comes from.
struct Identified {
  oracle::FoundRule finding;
  oracle::Ports ports;
  std::size_t asked = 0;  ///< questions, or records
  bool order_asked = false;
  std::optional<oracle::SummationNode> tree = {};  ///< the order of the sum, where it is one
  const char* place = nullptr;  ///< of records: "line" or "record"; nullptr: a device answered
  std::vector<std::int64_t> places = {};  ///< of each record
  std::size_t ignored = 0;                ///< records with unknown digits, or beyond 2^20

  bool records() const { return place != nullptr; }
  bool found() const { return finding.fits && finding.decided; }
};

/// Of the finding's rule, with a name that no unit of the catalogue has, so that open_unit() takes
/// the file. For unit::write_description().
unit::UnitDescription own_description(const Identified&);

/// Asks a function. `order`: the order of the sum, too, which is asked anyway where no rule fits.
Identified identify(const UnknownUnit&, const oracle::Device&, bool order,
                    const oracle::IdentifyOptions&);
/// Asks by text, one line a question and a line for its answer.
Identified identify(const UnknownUnit&, QuestionDevice&, bool order,
                    const oracle::IdentifyOptions&);
/// From the records of a file in any form that RecordFile reads. Throws Error naming file and line.
Identified identify_records(const std::string& in, const PortsTold&, oracle::IdentifyOptions);

/// Calls `found` for each instruction of a folder that a GPU recorded whose kind or name holds
/// `instr`; an instruction takes seconds. True where every one fits a rule. Throws Error naming
/// file and line.
bool identify_folder(
    const std::string& folder, const std::string& instr, const oracle::IdentifyOptions&,
    const std::function<void(const oracle::RecordedUnit&, const oracle::FoundRule&)>& found);

}  // namespace numemu::api
