package programs;

import com.yahoo.ml.caffe.CaffeOnSpark;
import com.yahoo.ml.caffe.Config;
import com.yahoo.ml.caffe.DataSource;
import hearth.HearthException;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A program of tests/spark/test_jvm.py. Arguments: a short solver, its model, rows as Parquet, and
 * the solver of a net that names DigitsOfAFrame.
 */
public final class DigitsInJava {
  public static void main(String[] args) {
    JavaSparkContext context = new JavaSparkContext(new SparkConf().setAppName("digits in Java"));
    SparkSession spark = SparkSession.builder().getOrCreate();
    CaffeOnSpark cos = new CaffeOnSpark(context.sc());
    Config conf = new Config(context.sc(), new String[] {"-conf", args[0], "-label", "label"});
    conf.set("modelPath", args[1]).set("features", new String[] {"ip1"}).set("clusterSize", 2);

    cos.train(DataSource.getSource(conf, true));
    say("accuracy", cos.test(DataSource.getSource(conf, false)).apply("accuracy").head());

    Dataset<Row> rows = spark.read().parquet(args[2]);
    DataSource<?, ?> source = DataSource.fromDataFrame(conf, rows.limit(50), false);
    cos.features(source).createOrReplaceTempView("features");
    rows.createOrReplaceTempView("rows");
    Row joined = spark.sql(
        "select count(*), sum(cast(f.label[0] = r.label as int)), min(size(ip1))"
            + " from features f join rows r on SampleID = id").head();
    say("joined", joined.mkString(" "));

    // Spark evaluates features lazily, so count() throws.
    Dataset<Row> odd = rows.selectExpr("id", "map(label, label) as label", "image");
    try {
      cos.features(DataSource.fromDataFrame(conf, odd, false)).count();
    } catch (Exception error) {
      HearthException found = HearthException.find(error).get();
      say("found", found.code() + " " + found.getMessage());
    }

    Config own = new Config(context.sc(), new String[] {"-conf", args[3]});
    own.set("modelPath", args[1]).set("features", new String[] {"ip1"});
    DataSource<?, ?> made = DataSource.getSource(own, false);
    say("own", made.getClass().getSimpleName() + " " + cos.features(made).count());
    // Does not call context.stop(): the JVM must exit anyway, and its Python process with it.
  }

  private static void say(String name, Object value) {
    System.out.println("RESULT " + name + ": " + value);
  }
}
