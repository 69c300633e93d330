"""The Python driver process of a JVM program: what the jar's classes ask for is done here.

The JVM starts it (jvm/src/main/scala/hearth/PythonDriver.scala), and it ends with the JVM.
"""
