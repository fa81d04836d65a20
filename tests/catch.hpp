// Includes Catch2 and what makes its assertions cheap, in one place so that they can be
// precompiled.
#pragma once
#include <catch2/catch.hpp>

#include "tests/assertions.hpp"
