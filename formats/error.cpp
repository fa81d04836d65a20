#include "formats/error.hpp"

#include <filesystem>
#include <new>

namespace numemu {

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    // A link to itself, a folder that goes away, one that may not be read.
    return file_error(error.path1().string() + ": " + error.code().message());
  } catch (const std::bad_alloc&) {
    return memory_error("out of memory");
  } catch (const std::exception& error) {
    return Error(std::string("internal error: ") + error.what(), ErrorKind::internal);
  } catch (...) {
    return Error("internal error: an exception without a text", ErrorKind::internal);
  }
}

}  // namespace numemu
