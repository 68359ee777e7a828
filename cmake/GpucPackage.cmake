# cpack -G DEB: what cmake --install brings, as a package for the Debian that it was built on.
set(CPACK_PACKAGE_NAME gpuc)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "ahead-of-time compiler for the training of neural networks")
set(CPACK_PACKAGE_CONTACT "The gpuc authors")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime trainer builder compiler tools)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What programs are linked with that use gpuc's libraries. LLVM's shared library is named though the tools need it: dpkg-shlibdeps finds it
# by two paths, takes either, and of one of them knows no package.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libxsmm-dev, zlib1g-dev, libpng-dev, libturbojpeg0-dev")
if(GPUC_BUILD_COMPILER)
  string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libllvm${LLVM_VERSION_MAJOR}, liblld-${LLVM_VERSION_MAJOR}-dev, libzstd-dev")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/gpuc RENAME copyright COMPONENT runtime)
include(CPack)
