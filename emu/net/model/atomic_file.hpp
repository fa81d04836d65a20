// Writing a file so that a reader, or a crash, sees the old file or the new one and nothing
// between.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace numemu::net {

/// Writes the parts one after the other to a temporary file beside `path`, flushes it to the disk
/// and renames it. Throws Error naming the file; the temporary file is removed then.
void write_atomically(const std::string& path, std::initializer_list<std::string_view> parts);

}  // namespace numemu::net
