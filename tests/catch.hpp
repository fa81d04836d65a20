// Includes Catch2, in one place so that it can be precompiled.
#pragma once
#include <catch2/catch.hpp>
