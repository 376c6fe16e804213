import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

import org.apache.carbondata.core.metadata.schema.table.CarbonTable;
import org.apache.carbondata.core.metadata.schema.table.column.CarbonColumn;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.core.util.CarbonSessionInfo;
import org.apache.carbondata.core.util.ThreadLocalSessionInfo;
import org.apache.carbondata.hadoop.api.CarbonInputFormat;
import org.apache.carbondata.hadoop.api.CarbonTableInputFormat;
import org.apache.carbondata.hadoop.readsupport.impl.DictionaryDecodeReadSupport;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;

/** Prints the rows of a whole table, one JSON array per line, as the release's own input format gives them. */
public final class ReadTable {
  public static void main(String[] arguments) throws Exception {
    String folder = arguments[0];
    CarbonProperties.getInstance()
        .addProperty("carbon.date.format", "yyyy-MM-dd")
        .addProperty("carbon.timestamp.format", "yyyy-MM-dd HH:mm:ss.SSS");
    ThreadLocalSessionInfo.setCarbonSessionInfo(new CarbonSessionInfo());
    CarbonTable table =
        CarbonTable.buildFromTablePath("t", "default", folder, UUID.randomUUID().toString());
    List<String> columns = new ArrayList<>();
    for (CarbonColumn column : table.getCreateOrderColumn("t")) {
      columns.add(column.getColName());
    }
    Configuration settings = Job.getInstance(new Configuration()).getConfiguration();
    CarbonInputFormat.setTableInfo(settings, table.getTableInfo());
    CarbonInputFormat.setTablePath(settings, folder);
    CarbonInputFormat.setTableName(settings, "t");
    CarbonInputFormat.setDatabaseName(settings, "default");
    CarbonInputFormat.setTransactionalTable(settings, true);
    CarbonInputFormat.setColumnProjection(settings, columns.toArray(new String[0]));
    CarbonInputFormat.setCarbonReadSupport(settings, DictionaryDecodeReadSupport.class);
    CarbonTableInputFormat<Object[]> format = new CarbonTableInputFormat<>();
    for (InputSplit split : format.getSplits(new JobContextImpl(settings, new JobID()))) {
      TaskAttemptContextImpl task = new TaskAttemptContextImpl(settings, new TaskAttemptID());
      RecordReader<Void, Object[]> reader = format.createRecordReader(split, task);
      reader.initialize(split, task);
      while (reader.nextKeyValue()) {
        StringBuilder line = new StringBuilder();
        json(line, reader.getCurrentValue());
        System.out.println(line);
      }
      reader.close();
    }
  }

  private static void json(StringBuilder out, Object value) {
    if (value == null || value instanceof Number && !(value instanceof BigDecimal) && isFinite((Number) value)
        || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof Object[]) {
      String between = "[";
      for (Object item : (Object[]) value) {
        out.append(between);
        json(out, item);
        between = ",";
      }
      out.append(between.equals("[") ? "[]" : "]");
    } else if (value instanceof byte[]) {
      out.append('"');
      for (byte one : (byte[]) value) {
        out.append(String.format("%02x", one));
      }
      out.append('"');
    } else {
      String text = value instanceof BigDecimal ? ((BigDecimal) value).toPlainString() : value.toString();
      out.append('"');
      for (char one : text.toCharArray()) {
        boolean isPlain = one >= ' ' && one < 0x7f && one != '"' && one != '\\';
        out.append(isPlain ? String.valueOf(one) : String.format("\\u%04x", (int) one));
      }
      out.append('"');
    }
  }

  private static boolean isFinite(Number value) {
    return !Double.isNaN(value.doubleValue()) && !Double.isInfinite(value.doubleValue());
  }
}
