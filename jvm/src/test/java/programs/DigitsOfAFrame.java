package programs;

import com.yahoo.ml.caffe.Config;
import com.yahoo.ml.caffe.DataSource;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** The rows of the table that a CoSData layer names, without the rows of one digit. */
public final class DigitsOfAFrame extends DataSource<Object, Object> {
  public DigitsOfAFrame(Config conf, int layerId, boolean isTrain) {
    super(conf, layerId, isTrain);
  }

  @Override
  public Dataset<Row> makeFrame(SparkSession spark) {
    Map<?, ?> parameter = (Map<?, ?>) layer().get("cos_data_param");
    return spark.read().parquet(parameter.get("source").toString()).where("label <> 9");
  }
}
