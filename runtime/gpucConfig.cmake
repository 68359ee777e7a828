# find_package(gpuc): the target gpuc::runtime.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/gpucTargets.cmake")
