"""The Python driver process of a JVM program, which serves requests of the jar's classes.

The JVM starts it (jvm/src/main/scala/hearth/PythonDriver.scala), and it ends with the JVM.
"""
