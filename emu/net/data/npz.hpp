// Numpy's .npz archives: a zip of .npy files, one for each array or tensor.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emu/net/tensor.hpp"
#include "formats/storage/array.hpp"

struct zip;

namespace numemu::net {

struct ZipEntry {
  std::string name;         ///< as in the file, in no encoding
  std::int64_t size = 0;    ///< bytes of the contents
  std::uint64_t index = 0;  ///< libzip's
};

/// An archive without encryption whose entries are stored or deflated (zip64 included) and whose
/// local headers agree with its directory. Throws Error("FILE: ..."), with the entry where one is
/// at fault.
class ZipReader {
 public:
  /// Reads the directory. The contents together may take 64 times the file's size and 15 MiB (see
  /// spend); archives that declare more are refused here.
  explicit ZipReader(const std::string& path);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The contents of an entry, of the declared size and CRC.
  std::string contents(const ZipEntry&);
  /// Takes `bytes` of what an archive may make its reader allocate; Error at the entry when that is
  /// exceeded. The contents and the directory have been taken.
  void spend(const ZipEntry&, std::int64_t bytes);

 private:
  struct Close {
    void operator()(zip*) const;
  };

  [[noreturn]] void fail(const ZipEntry&, std::string_view text) const;
  void list_entries();

  std::string path_;
  std::unique_ptr<zip, Close> zip_;
  std::vector<ZipEntry> entries_;
  std::int64_t left_ = 0;
};

/// Reads every entry NAME.npy, stored or deflated, in the archive's order, as the tensor NAME.
/// float16 is exact; float64 and integers are rounded once, to nearest even. Hostile input: takes
/// at most 64 times the file's size and 16 MiB of memory, declared sizes are refused before
/// anything is inflated, CRCs are checked. Throws Error naming the file and the entry at fault.
std::vector<NamedTensor> read_npz_tensors(const std::string& path);
/// Those entries as arrays of their own types, by name; little-endian and C order alone. Byte
/// strings are refused or, with `with_text`, given as uint8 with one axis more.
std::map<std::string, Array> read_npz_arrays(const std::string& path, bool with_text = false);

}  // namespace numemu::net
