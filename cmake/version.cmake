# `cmake -P cmake/version.cmake` fails when this cmake is older than what CMakeLists.txt asks for.
cmake_minimum_required(VERSION 3.25)
