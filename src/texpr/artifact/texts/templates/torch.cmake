# libtexpr_@NAME@_torch.so, the operators of @NAME@ for PyTorch 2.10 or newer: cmake -B build && cmake --build build
# && cmake --install build, which puts it beside @NAME@.py. TEXPR_TORCH is the folder of PyTorch's package, by default that of
# the Python that is found.
cmake_minimum_required(VERSION 3.18)
project(texpr_@NAME@_torch CXX)

if(NOT TEXPR_TORCH)
    find_package(Python REQUIRED COMPONENTS Interpreter)
    execute_process(
        COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
        OUTPUT_VARIABLE TEXPR_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE FAILED ERROR_QUIET)
    if(FAILED)
        message(FATAL_ERROR "${Python_EXECUTABLE} has no PyTorch: name a Python that has it by -DPython_EXECUTABLE=, or the folder "
            "of PyTorch's package by -DTEXPR_TORCH=")
    endif()
endif()

find_package(texpr_@NAME@ REQUIRED CONFIG PATHS "${CMAKE_CURRENT_SOURCE_DIR}/../lib/cmake" NO_DEFAULT_PATH)

add_library(texpr_@NAME@_torch SHARED "@NAME@.cpp")
target_compile_features(texpr_@NAME@_torch PRIVATE cxx_std_20)
target_include_directories(texpr_@NAME@_torch SYSTEM PRIVATE "${TEXPR_TORCH}/include")
target_link_libraries(texpr_@NAME@_torch PRIVATE texpr::@NAME@_static @LIBRARIES@)
set_target_properties(texpr_@NAME@_torch PROPERTIES CXX_VISIBILITY_PRESET hidden)
install(TARGETS texpr_@NAME@_torch LIBRARY DESTINATION "${CMAKE_CURRENT_SOURCE_DIR}")
