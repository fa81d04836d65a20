// Exists so that the Catch2 header is precompiled once, in the library that all test executables
// share.
#include "tests/catch.hpp"
