"""The Python driver process of a JVM program: what the classes of hearth-spark.jar ask is done here.

The JVM starts it (jvm/src/main/scala/hearth/PythonDriver.scala), and it ends with the JVM.
"""
