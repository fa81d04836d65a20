// Everything is written before anything changes places; then only names change. Paths are compared
// as the file system sees them; a folder is usable if the nearest existing one is writable.
#include "formats/storage/output_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/storage/atomic_file.hpp"
#include "formats/storage/codes.hpp"
#include "formats/storage/npy.hpp"
#include "formats/storage/safetensors.hpp"
#include "formats/storage/sidecar.hpp"

namespace numemu {
namespace {

bool is_file(const NamedPath& file) { return !file.path.empty() && file.path != "-"; }

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error) && !error) return true;
  // What is not there yet has a name only.
  const auto first = std::filesystem::weakly_canonical(std::filesystem::absolute(a, error), error);
  if (error) return a == b;
  const auto second = std::filesystem::weakly_canonical(std::filesystem::absolute(b, error), error);
  return error ? a == b : first == second;
}

void require_two_files(const NamedPath& a, const NamedPath& b) {
  if (!is_file(a) || !is_file(b)) return;
  const bool may_be_one = a.option == "--out" && b.replaceable;
  if (!may_be_one && same_file(a.path, b.path)) {
    throw usage_error(
        fmt::format("{} and {}: expected two files, found {} twice", a.option, b.option, b.path));
  }
  for (const auto& [file, of] : {std::pair(&a, &b), {&b, &a}}) {
    if (!of->sidecar || !same_file(file->path, sidecar_path(of->path))) continue;
    throw usage_error(fmt::format("{} and {}: expected two files, found {}, the sidecar of {}",
                                  file->option, of->option, file->path, of->path));
  }
}

}  // namespace

void require_distinct_paths(const std::vector<NamedPath>& outputs,
                            const std::vector<NamedPath>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = i + 1; j < outputs.size(); ++j) require_two_files(outputs[i], outputs[j]);
    for (const NamedPath& input : inputs) require_two_files(outputs[i], input);
  }
}

void require_writable_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::path there = folder.empty() ? "." : folder;
  while (std::filesystem::symlink_status(there, error).type() ==
         std::filesystem::file_type::not_found) {
    const std::filesystem::path parent = there.parent_path();
    there = parent.empty() || parent == there ? std::filesystem::path(".") : parent;
  }
  const std::filesystem::file_status status = std::filesystem::status(there, error);
  if (!error && !std::filesystem::is_directory(status)) {
    throw file_error(there == folder ? folder + ": expected a folder"
                                     : fmt::format("{}: cannot be created ({} is not a folder)",
                                                   folder, there.string()));
  }
  if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw file_error(fmt::format("{}: cannot be written ({})", folder, std::strerror(errno)));
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw file_error(fmt::format("{}: cannot be created ({})", folder, error.message()));
}

std::string fresh_folder(const std::string& folder) {
  std::error_code ignored;
  std::string name = folder.substr(0, folder.find_last_not_of('/') + 1);
  if (const std::filesystem::path last = std::filesystem::path(name).filename();
      last == "." || last == "..")
    name = std::filesystem::weakly_canonical(name, ignored);
  for (int n = 2;; ++n) {
    const std::string other = fmt::format("{}-{}", name, n);
    if (!std::filesystem::exists(std::filesystem::symlink_status(other, ignored))) return other;
  }
}

namespace {

using Pending = std::unique_ptr<PendingFile>;

Pending pending_array(const std::string& path, ArrayType type, const ArrayShape& shape,
                      const void* data) {
  return Pending(new PendingFile(pending_npy(path, type, shape, data)));
}

Pending pending_tensor(const std::string& path, const Format& f, const ArrayShape& shape,
                       const std::uint8_t* codes, const std::string& tensor) {
  const SafetensorsType* type = safetensors_type_of_format(f.name);
  if (type == nullptr) {
    throw Error(fmt::format("{}: safetensors has no dtype for {}; it has {}", path, f.name,
                            joined(safetensors_code_types(), ", ")));
  }
  const std::int64_t elements = element_count_of(shape).value();
  Bytes packed(f.bits < 8 ? packed_row_bytes(elements, f.bits) : 0);
  if (f.bits < 8) {
    auto* to = reinterpret_cast<std::uint8_t*>(packed.data());
    pack_codes(codes, 1, elements, f.bits, BitOrder::low_first, to);
    codes = to;
  }
  return Pending(new PendingFile(pending_safetensors_tensor(path, tensor, *type, shape, codes)));
}

Pending pending_packed(const std::string& path, const Format& f, const ArrayShape& shape,
                       const std::uint8_t* codes, BitOrder order) {
  check_bit_order(order, f.bits);
  const PackedRows rows(shape);
  Array packed(ArrayType::uint8, packed_shape(shape, f.bits));
  pack_codes(codes, rows.count, rows.length, f.bits, order, packed.as<std::uint8_t>());
  return pending_array(path, packed.type, packed.shape, packed.data.data());
}

}  // namespace

void OutputFiles::add_codes(std::string_view role, const std::string& path, const Format& f,
                            const ArrayShape& shape, const void* codes, Sidecar about,
                            const std::string& tensor) {
  about.format = f.name;
  if (!codebook_file(f.name).empty()) about.codebook_sha256 = codebook_sha256(f);
  about.logical_shape = shape;
  const auto* bytes = static_cast<const std::uint8_t*>(codes);
  const BitOrder order = about.order.value_or(BitOrder::low_first);
  if (is_safetensors(path)) {
    if (order != BitOrder::low_first)
      throw Error(path + ": expected the order low-first in safetensors");
    about.packed = f.bits < 8;
    about.order.reset();
  }
  require_replaceable(sidecar_path(path));
  Pending file = is_safetensors(path)
                     ? pending_tensor(path, f, shape, bytes, tensor.empty() ? "codes" : tensor)
                 : about.packed.value_or(false)
                     ? pending_packed(path, f, shape, bytes, order)
                     : pending_array(path, container_type(f), shape, codes);
  outputs_.push_back({std::string(role), path, std::move(file), std::move(about)});
}

void OutputFiles::add_array(std::string_view role, const std::string& path, ArrayType type,
                            const ArrayShape& shape, const void* data) {
  outputs_.push_back({std::string(role), path, pending_array(path, type, shape, data)});
}

void OutputFiles::add_numbers(std::string_view role, const std::string& path, const Format& f,
                              const Array& array, const std::string& tensor) {
  const auto* data = array.as<std::uint8_t>();
  Pending file = is_safetensors(path) ? pending_tensor(path, f, array.shape, data,
                                                       tensor.empty() ? "values" : tensor)
                                      : pending_array(path, array.type, array.shape, data);
  outputs_.push_back({std::string(role), path, std::move(file)});
}

void OutputFiles::add_numbers(std::string_view role, const std::string& path,
                              const ArrayShape& shape,
                              const std::function<void(const WriteNumbers&)>& fill,
                              const std::string& tensor) {
  std::string head;
  if (is_safetensors(path)) {
    const std::int64_t elements = element_count_of(shape).value();
    SafetensorsHeader header;
    header.entries.push_back({tensor.empty() ? "values" : tensor, safetensors_type("F32"), shape,
                              elements, 0, elements * static_cast<std::int64_t>(sizeof(float))});
    head = format_safetensors_header(path, header);
  } else {
    head = format_npy_header(ArrayType::float32, shape);
  }
  const auto whole = [&](const PendingFile::Write& write) {
    write(head);
    fill([&](const float* numbers, std::int64_t count) {
      write({reinterpret_cast<const char*>(numbers),
             static_cast<std::size_t>(count) * sizeof(float)});
    });
  };
  outputs_.push_back({std::string(role), path, Pending(new PendingFile(path, whole))});
}

void OutputFiles::add_text(std::string_view role, const std::string& path, std::string_view text) {
  outputs_.push_back({std::string(role), path, Pending(new PendingFile(path, {text}))});
}

void OutputFiles::publish() {
  std::vector<Pending> sidecars;
  const bool any_codes = std::any_of(outputs_.begin(), outputs_.end(),
                                     [](const Output& o) { return o.about.has_value(); });
  std::map<std::string, std::string> digests;
  for (const Output& o : outputs_) {
    if (any_codes) digests[o.role] = o.file->sha256();
  }
  for (Output& o : outputs_) {
    if (!o.about) continue;
    o.about->written_with = digests;
    o.about->written_with.erase(o.role);
    o.about->sha256 = digests[o.role];
    sidecars.emplace_back(new PendingFile(pending_sidecar(o.path, *o.about)));
  }
  std::vector<std::string> targets;
  for (const Output& o : outputs_) targets.push_back(o.file->target());
  Folders folders(targets);
  folders.lock(true);
  for (std::size_t i = 1; i < outputs_.size(); ++i) outputs_[i].file->remove_old();
  for (const Output& o : outputs_) remove_sidecar(o.path);
  for (const Output& o : outputs_) o.file->take_place();
  for (const Pending& sidecar : sidecars) sidecar->take_place();
  folders.flush();
}

void write_codes(const std::string& path, const Format& f, const ArrayShape& shape,
                 const void* codes, Sidecar about, const std::string& tensor) {
  OutputFiles file;
  file.add_codes("codes", path, f, shape, codes, std::move(about), tensor);
  file.publish();
}

void write_numbers(const std::string& path, const Format& f, const Array& array,
                   const std::string& tensor) {
  OutputFiles file;
  file.add_numbers("values", path, f, array, tensor);
  file.publish();
}

}  // namespace numemu
