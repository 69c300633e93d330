"""The Python driver process of a JVM program: does what the classes of hearth-spark.jar ask.

The JVM starts it (jvm/src/main/scala/hearth/PythonDriver.scala), and it ends with the JVM.
"""
