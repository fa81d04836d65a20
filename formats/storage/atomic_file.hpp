// Writing a file so that a reader, or a crash, sees the old file or the new one and nothing
// between.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace numemu {

/// Writes the parts one after the other to a temporary file beside `path`, flushes it to the disk
/// and renames it. Throws Error naming the file; the temporary file is removed then.
void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts);

/// Throws Error unless `path` is a regular file or a new name: a rename would replace a device or a
/// link instead of writing to it. For whoever takes the path from a user.
void require_replaceable(const std::string& path);

}  // namespace numemu
