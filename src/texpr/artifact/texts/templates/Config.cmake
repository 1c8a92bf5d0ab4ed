# texpr::@NAME@ (the shared library) and texpr::@NAME@_static. Where TEXPR_EMULATE is set before find_package, texpr::@NAME@ is
# built from src/ instead and runs its kernels on the CPU.
get_filename_component(_texpr_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

set(texpr_@NAME@_ON "@ON@")
set(texpr_@NAME@_TARGETS @TARGETS@)

if(TEXPR_EMULATE AND NOT TARGET texpr::@NAME@)
    add_subdirectory("${_texpr_root}/src" "${CMAKE_BINARY_DIR}/texpr_@NAME@")
    add_library(texpr::@NAME@ ALIAS texpr_@NAME@_built)
endif()

if(NOT TARGET texpr::@NAME@)
    add_library(texpr::@NAME@ SHARED IMPORTED)
    set_target_properties(texpr::@NAME@ PROPERTIES
        IMPORTED_LOCATION "${_texpr_root}/lib/libtexpr_@NAME@.so"
        IMPORTED_SONAME "libtexpr_@NAME@.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_texpr_root}/include")
endif()

if(NOT TARGET texpr::@NAME@_static)
    add_library(texpr::@NAME@_static STATIC IMPORTED)
    set_target_properties(texpr::@NAME@_static PROPERTIES
        IMPORTED_LOCATION "${_texpr_root}/lib/libtexpr_@NAME@.a"
        INTERFACE_LINK_LIBRARIES "@LIBRARIES@"
        INTERFACE_INCLUDE_DIRECTORIES "${_texpr_root}/include")
endif()

unset(_texpr_root)
