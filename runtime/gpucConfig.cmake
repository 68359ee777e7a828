# find_package(gpuc): the targets gpuc::runtime, and gpuc::c for other languages.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/gpucTargets.cmake")
