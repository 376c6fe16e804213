// Times the CarbonData SDK on a folder of its files: reads all rows, and writes them again.
//
//   CarbonBench read  FOLDER ITERATIONS
//   CarbonBench write FOLDER TARGET ITERATIONS
//
// Prints the rows and the processor seconds of each iteration: of the thread that reads, and of the whole process while it
// writes, since the SDK writes with threads of its own.
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.sdk.file.CarbonReader;
import org.apache.carbondata.sdk.file.CarbonSchemaReader;
import org.apache.carbondata.sdk.file.CarbonWriter;
import org.apache.carbondata.sdk.file.Schema;

public class CarbonBench {
  static double threadSeconds() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
  }

  static double processSeconds() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
  }

  static String[] names(Schema schema) {
    String[] names = new String[schema.getFields().length];
    for (int at = 0; at < names.length; at++) names[at] = schema.getFields()[at].getFieldName();
    return names;
  }

  static Schema schema(String folder) throws Exception {
    return CarbonSchemaReader.readSchema(folder).asOriginOrder();
  }

  static CarbonReader<Object[]> reader(String folder) throws Exception {
    return CarbonReader.builder(folder, "bench").projection(names(schema(folder))).build();
  }

  static void read(String folder, int iterations) throws Exception {
    StringBuilder seconds = new StringBuilder();
    long rows = 0;
    for (int iteration = 0; iteration < iterations; iteration++) {
      double start = threadSeconds();
      CarbonReader<Object[]> reader = reader(folder);
      rows = 0;
      while (reader.hasNext()) {
        Object[] row = reader.readNextRow();
        if (row.length > 0) rows++;
      }
      reader.close();
      seconds.append(seconds.length() == 0 ? "" : ",").append(threadSeconds() - start);
    }
    System.out.println("{\"rows\":" + rows + ",\"seconds\":[" + seconds + "]}");
  }

  static void write(String folder, String target, int iterations) throws Exception {
    Schema schema = schema(folder);
    List<String[]> rows = new ArrayList<>();
    CarbonReader<Object[]> reader = reader(folder);
    while (reader.hasNext()) {
      Object[] row = reader.readNextRow();
      String[] texts = new String[row.length];
      for (int at = 0; at < row.length; at++) texts[at] = String.valueOf(row[at]);
      rows.add(texts);
    }
    reader.close();
    StringBuilder seconds = new StringBuilder();
    for (int iteration = 0; iteration < iterations; iteration++) {
      String place = target + File.separator + iteration;
      double start = processSeconds();
      CarbonWriter writer = CarbonWriter.builder().outputPath(place).withCsvInput(schema).writtenBy("bench").build();
      for (String[] row : rows) writer.write(row);
      writer.close();
      seconds.append(seconds.length() == 0 ? "" : ",").append(processSeconds() - start);
    }
    System.out.println("{\"rows\":" + rows.size() + ",\"seconds\":[" + seconds + "]}");
  }

  public static void main(String[] args) throws Exception {
    CarbonProperties.getInstance().addProperty("carbon.unsafe.working.memory.in.mb", "1024");
    if (args[0].equals("read")) read(args[1], Integer.parseInt(args[2]));
    else write(args[1], args[2], Integer.parseInt(args[3]));
    System.exit(0);
  }
}
