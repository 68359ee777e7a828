// What of MPI differs between its two families of libraries, whose headers are not needed for it: MPI says
// what its functions do, but not what a handle is.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace gpuc {

inline constexpr int kMpiAnyTag = -1, kMpiSerialized = 2, kMpiMostErrorText = 512;  // the same in both

/// OpenMPI's handles are addresses of objects that the library exports.
struct OpenMpiAbi {
  using Handle = void*;
  struct MessageStatus {
    int source, tag, error, cancelled;
    size_t count;
    size_t bytes() const { return count; }
  };
  static constexpr int kTruncated = 15;

  static Handle world(void* library) { return ::dlsym(library, "ompi_mpi_comm_world"); }
  static Handle byte(void* library) { return ::dlsym(library, "ompi_mpi_byte"); }
  static Handle returnErrors(void* library) { return ::dlsym(library, "ompi_mpi_errors_return"); }
};

/// Those of MPICH, and of all that share its ABI (Intel MPI, MVAPICH, Cray MPICH), are numbers.
struct MpichAbi {
  using Handle = int;
  struct MessageStatus {
    int count_low, count_high_and_cancelled, source, tag, error;
    size_t bytes() const {
      return static_cast<size_t>(static_cast<unsigned>(count_high_and_cancelled) >> 1) << 32 |
             static_cast<unsigned>(count_low);
    }
  };
  static constexpr int kTruncated = 14;

  static Handle world(void*) { return 0x44000000; }
  static Handle byte(void*) { return 0x4c00010d; }
  static Handle returnErrors(void*) { return 0x54000001; }
};

/// Functions of an opened library; null if it lacks one.
template <typename Abi>
struct MpiFunctions {
  using Handle = typename Abi::Handle;
  using MessageStatus = typename Abi::MessageStatus;

  int (*init_thread)(int*, char***, int, int*) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*comm_size)(Handle, int*) = nullptr;
  int (*set_errhandler)(Handle, Handle) = nullptr;
  int (*isend)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*test)(Handle*, int*, MessageStatus*) = nullptr;
  int (*error_class)(int, int*) = nullptr;
  int (*error_string)(int, char*, int*) = nullptr;
  int (*finalize)() = nullptr;

  /// The first that is missing; null if none is.
  const char* load(void* library) {
    const char* missing = nullptr;
    auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function && !missing) missing = name;
    };
    find(init_thread, "MPI_Init_thread");
    find(comm_rank, "MPI_Comm_rank");
    find(comm_size, "MPI_Comm_size");
    find(set_errhandler, "MPI_Comm_set_errhandler");
    find(isend, "MPI_Isend");
    find(irecv, "MPI_Irecv");
    find(test, "MPI_Test");
    find(error_class, "MPI_Error_class");
    find(error_string, "MPI_Error_string");
    find(finalize, "MPI_Finalize");
    return missing;
  }
};

}  // namespace gpuc
