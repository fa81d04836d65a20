// The output files of one run, put in place together: readers never find files of two runs. Before
// that their paths and folders are checked.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "formats/storage/array.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {

/// A file as a user names it. Empty paths and "-" are no files and are passed over.
struct NamedPath {
  std::string option;  ///< "--flags"
  std::string path;
  /// A sidecar PATH.json belongs to the file: it is read with it, or written or removed with it.
  bool sidecar = true;
  /// An input that is read whole before `--out` is written, which may take its place.
  bool replaceable = false;
};

/// Throws Error "--out and --flags: expected two files, found a.npy twice" where two outputs, or an
/// output and an input, or the sidecar of either, are one file, also through links and other
/// spellings.
void require_distinct_paths(const std::vector<NamedPath>& outputs,
                            const std::vector<NamedPath>& inputs = {});

/// Throws Error naming `folder` unless files can be made in it, or in what will be made for it
/// where it is not there yet. Leaves nothing behind.
void require_writable_folder(const std::string& folder);

/// Makes it, and those above it, where it is not there. Throws Error naming it.
void make_folder(const std::string& folder);

/// Another name for a folder that is taken: "runs/sweep-2" for "runs/sweep", the first that does
/// not exist.
std::string fresh_folder(const std::string& folder);

/// Files that belong together. Each is written beside its place when it is added; publish() puts
/// all of them there at once. Every add throws Error naming the file.
class OutputFiles {
 public:
  /// Codes in containers (packed if `about.packed`) and their sidecar: `about` completed with
  /// format, logical shape and digests. A .safetensors file gets one tensor of that name ("codes"
  /// if empty). `role` is one of kSidecarRoles.
  void add_codes(std::string_view role, const std::string& path, const Format&, const ArrayShape&,
                 const void* codes, Sidecar about, const std::string& tensor = "");
  /// An .npy array that is neither codes nor numbers to read as codes (flags, tensor scales).
  void add_array(std::string_view role, const std::string& path, ArrayType, const ArrayShape&,
                 const void* data);
  /// Plain numbers, which are codes of float32 or float64 (.safetensors: of any format it has).
  void add_numbers(std::string_view role, const std::string& path, const Format&, const Array&,
                   const std::string& tensor = "");
  /// float32 numbers of that shape, written in C order piece by piece: more than memory holds.
  using WriteNumbers = std::function<void(const float* numbers, std::int64_t count)>;
  void add_numbers(std::string_view role, const std::string& path, const ArrayShape&,
                   const std::function<void(const WriteNumbers&)>& fill,
                   const std::string& tensor = "");
  void add_text(std::string_view role, const std::string& path, std::string_view text);

  /// Puts the files into their places while no other run does the same there, and no reader looks.
  /// Old files go before the first new one comes, all but the one that was added first, which is
  /// replaced: a run that is killed in between leaves no file of another run beside its own. A
  /// sidecar of codes that had the name of a plain array is removed.
  void publish();

 private:
  struct Output {
    std::string role, path;
    std::unique_ptr<PendingFile> file;
    std::optional<Sidecar> about = {};
  };
  std::vector<Output> outputs_;
};

/// One file of codes, one of numbers: OutputFiles with nothing beside it.
void write_codes(const std::string& path, const Format&, const ArrayShape&, const void* codes,
                 Sidecar about, const std::string& tensor = "");
void write_numbers(const std::string& path, const Format&, const Array&,
                   const std::string& tensor = "");

}  // namespace numemu
