// Marks functions that run on the host and on the GPU; headers here are C++17, for older nvcc.
#pragma once

#ifdef __CUDACC__
#define NUMEMU_HD __host__ __device__
#else
#define NUMEMU_HD
#endif
