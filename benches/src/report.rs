//! The results as a table for people and as JSON for programs.

use serde::Serialize;

use crate::format::Codec;
use crate::measure::Measurement;
use crate::operation::Operation;

/// One operation of one format with one codec.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub operation: String,
    pub codec: Codec,
    pub format: String,
    pub seconds: f64,
    pub rows: usize,
    pub rows_per_second: f64,
    /// Bytes of Arrow values.
    pub bytes_per_second: f64,
    pub file_bytes: u64,
    pub peak_bytes: Option<u64>,
    /// How many times as fast as Parquet.
    pub ratio: Option<f64>,
}

/// All lines of a run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    pub rows: usize,
    pub lines: Vec<Line>,
}

impl Report {
    #[expect(clippy::cast_precision_loss, reason = "speeds need not be exact")]
    pub fn add(
        &mut self,
        operation: &Operation,
        codec: Codec,
        format: &str,
        measured: Measurement,
        value_bytes: u64,
        file_bytes: u64,
        baseline: Option<Measurement>,
    ) {
        self.lines.push(Line {
            operation: operation.to_string(),
            codec,
            format: format.to_string(),
            seconds: measured.seconds,
            rows: measured.rows,
            rows_per_second: measured.rows as f64 / measured.seconds,
            bytes_per_second: value_bytes as f64 / measured.seconds,
            file_bytes,
            peak_bytes: measured.peak_bytes,
            ratio: baseline.map(|baseline| baseline.seconds / measured.seconds),
        });
    }

    /// A Markdown table, and the geometric mean of the scans of one column.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from(
            "| operation | codec | format | ms | million rows/s | Arrow MB/s | files MiB | peak MiB | × Parquet |\n\
             | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for line in &self.lines {
            text.push_str(&format!(
                "| {} | {} | {} | {:.2} | {:.1} | {:.0} | {:.1} | {} | {} |\n",
                line.operation,
                line.codec.name(),
                line.format,
                line.seconds * 1e3,
                line.rows_per_second / 1e6,
                line.bytes_per_second / 1e6,
                mebibytes(line.file_bytes),
                line.peak_bytes.map_or_else(|| "?".into(), |bytes| format!("{:.1}", mebibytes(bytes))),
                line.ratio.map_or_else(|| "–".into(), |ratio| format!("{ratio:.2}")),
            ));
        }
        for (format, codec, mean) in self.one_column_means() {
            text.push_str(&format!(
                "| one column, geometric mean | {} | {format} | | | | | | {mean:.2} |\n",
                codec.name()
            ));
        }
        text
    }

    /// The geometric mean of the ratios of all scans of one column, for each format and codec.
    fn one_column_means(&self) -> Vec<(&str, Codec, f64)> {
        let mut means: Vec<(&str, Codec, f64, f64)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.operation.starts_with("l_")) {
            let Some(ratio) = line.ratio else { continue };
            match means.iter_mut().find(|(format, codec, ..)| *format == line.format && *codec == line.codec)
            {
                Some((.., logarithms, count)) => {
                    *logarithms += ratio.ln();
                    *count += 1.0;
                }
                None => means.push((&line.format, line.codec, ratio.ln(), 1.0)),
            }
        }
        means.into_iter().map(|(format, codec, logs, count)| (format, codec, (logs / count).exp())).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes need not be exact")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
