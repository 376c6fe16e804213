//! Options that several commands share.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use pilaster::carbondata::{Calendar, CarbonOptions, OutsideFolders};
use pilaster::core::dataset::column_index;
use pilaster::doris::{DorisOptions, is_tablet_schema, read_schema};
use pilaster::kudu::{AssumedShape, KuduOptions, KuduStoreOptions, LogUse};
use pilaster::redfile::{self, RedfileOptions};
use pilaster::text::printable;
use pilaster::{
    Dataset, DatasetRef, Error, LostCells, OpenOptions, Result, RowRanges, ScanRequest, schema_file,
};
use pilaster_datafusion::RowFilter;

use crate::progress::Words;

/// What to read and what to write. One list, so that options may stand between the two: `convert DIR --table T out.parquet`.
#[derive(Debug, Args)]
pub(crate) struct FromToArgs {
    /// What to read: files, folders, globs or URLs, several of which are read as one; then what to write, whose extension
    /// names the format
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
}

impl FromToArgs {
    /// The sources and the target.
    pub(crate) fn split(&self) -> Result<(Vec<String>, &Path)> {
        let Some((target, sources)) = self.paths.split_last().filter(|(_, sources)| !sources.is_empty())
        else {
            return Err(Error::invalid("two paths are needed: what to read and what to write"));
        };
        let text = |path: &OsString| {
            let not_text = || Error::invalid(format!("{}: only names in UTF-8 are read", path.display()));
            path.to_str().map(str::to_string).ok_or_else(not_text)
        };
        Ok((sources.iter().map(text).collect::<Result<_>>()?, Path::new(target)))
    }
}

/// How to open.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Which table of a folder that holds several
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// Names and types for files that carry none, as JSON: {"columns": [{"name": "id", "type": "int64"}]}; for Doris
    /// segments a tablet schema, whose columns have a "unique_id"
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Only these segments of a CarbonData table; may be given several times: --segment 0 --segment 2
    #[arg(long, value_name = "N")]
    segment: Vec<String>,

    /// Show hidden columns of Doris too
    #[arg(long)]
    hidden: bool,

    /// Add a column with one path of a Doris VARIANT; may be given several times: --variant-path "v['a.b']"
    #[arg(long, value_name = "COLUMN['PATH']", value_parser = parse_variant_path)]
    variant_path: Vec<(String, String)>,

    /// Do not compare stored checksums
    #[arg(long)]
    no_checksums: bool,

    /// Rows as they were earlier: for Kudu a hybrid timestamp or a clock time (2024-05-31T12:00:00), for CarbonData a clock
    /// time or milliseconds since 1970, for Doris a version
    #[arg(long, value_name = "TIME|VERSION")]
    as_of: Option<String>,

    /// Only this tablet of a table of Kudu or Doris: its id, of Kudu also the start of it
    #[arg(long, value_name = "ID")]
    tablet: Option<String>,

    /// Read this server's replicas of Kudu tablets: its uuid, or the start of it
    #[arg(long, value_name = "UUID")]
    replica: Option<String>,

    /// Only rows that a Kudu server had flushed: leave out what stands in the write-ahead log only
    #[arg(long)]
    no_wal: bool,

    /// Read a table of which parts are not here: the rest of it, and say on stderr what is missing. Without it that is an error
    #[arg(long)]
    partial: bool,

    /// Look for segments that a CarbonData table names by a path outside of its folder
    #[arg(long)]
    outside: bool,

    /// Where such a path lies now: --moved hdfs://server/added=/copy/added; may be given several times
    #[arg(long, value_name = "FROM=TO", value_parser = parse_moved)]
    moved: Vec<(String, String)>,

    /// Give days and times of CarbonData before 1582-10-15 as the numbers that are stored, not as CarbonData shows them (it counts
    /// these in Java's calendar)
    #[arg(long)]
    raw_days: bool,

    /// The clear server key in hex, for Kudu disks encrypted with a key management service
    #[arg(long, value_name = "HEX", env = "PILASTER_KUDU_SERVER_KEY", hide_env_values = true)]
    server_key: Option<String>,

    /// Show private keys and authorization tokens in Kudu's system catalog and log; they are left out otherwise
    #[arg(long)]
    show_secrets: bool,
}

impl OpenArgs {
    pub(crate) fn ignores_checksums(&self) -> bool {
        self.no_checksums
    }

    /// The table that was asked for.
    pub(crate) fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// What decides which rows are read, as it could be typed.
    pub(crate) fn choices(&self) -> Vec<String> {
        let all = |name: &str, values: &[String]| -> Vec<_> {
            values.iter().map(|value| format!("--{name} {value}")).collect()
        };
        let one = |name: &str, value: &Option<String>| all(name, value.as_slice());
        let flag = |name: &str, is_set: bool| is_set.then(|| format!("--{name}")).into_iter().collect();
        let pairs = |name: &str, values: &[(String, String)]| -> Vec<_> {
            values.iter().map(|(from, to)| format!("--{name} {from}={to}")).collect()
        };
        [
            one("table", &self.table),
            all("segment", &self.segment),
            flag("hidden", self.hidden),
            pairs("variant-path", &self.variant_path),
            one("as-of", &self.as_of),
            one("tablet", &self.tablet),
            one("replica", &self.replica),
            flag("no-wal", self.no_wal),
            flag("partial", self.partial),
            flag("outside", self.outside),
            pairs("moved", &self.moved),
            flag("raw-days", self.raw_days),
        ]
        .concat()
    }

    pub(crate) fn options(&self) -> Result<OpenOptions> {
        let (schema, tablet_schema) = match &self.schema {
            Some(path) if is_tablet_schema(path)? => (None, Some(read_schema(path)?)),
            Some(path) => (Some(schema_file::read(path)?), None),
            None => (None, None),
        };
        let segments = (!self.segment.is_empty()).then(|| self.segment.clone());
        let doris = DorisOptions::default()
            .with_schema(tablet_schema)
            .with_hidden(self.hidden)
            .with_tablet(self.tablet.clone());
        let doris = self
            .variant_path
            .iter()
            .fold(doris, |doris, (column, path)| doris.with_variant_path(column, path));
        let outside = OutsideFolders::default().with_allowed(self.outside);
        let outside =
            self.moved.iter().fold(outside, |outside, (from, to)| outside.with_moved(from, Path::new(to)));
        Ok(OpenOptions::default()
            .with_schema(schema)
            .with_doris(doris)
            .with_carbondata(
                CarbonOptions::default()
                    .with_segments(segments)
                    .with_outside(outside)
                    .with_calendar(if self.raw_days { Calendar::Stored } else { Calendar::Shown }),
            )
            .with_verify_checksums(!self.no_checksums)
            .with_table(self.table.clone())
            .with_partial(self.partial)
            .with_as_of(self.as_of.clone())
            .with_kudu(self.kudu_options(None)))
    }

    /// As [`OpenArgs::options`], for a CFile whose footer is lost.
    pub(crate) fn options_for(&self, shape: Option<AssumedShape>) -> Result<OpenOptions> {
        Ok(self.options()?.with_kudu(self.kudu_options(shape)))
    }

    fn kudu_options(&self, shape: Option<AssumedShape>) -> KuduOptions {
        let store = KuduStoreOptions::default()
            .with_log(if self.no_wal { LogUse::Ignore } else { LogUse::Replay })
            .with_replica(self.replica.clone())
            .with_tablet(self.tablet.clone())
            .with_server_key(self.server_key.clone())
            .with_secrets(self.show_secrets);
        KuduOptions::default().with_assumed_shape(shape).with_store(store)
    }
}

/// What to do about parts that are lost.
#[derive(Debug, Args)]
pub(crate) struct LostArgs {
    /// Give null for lost cells where the column may be null, instead of leaving out the row
    #[arg(long)]
    null_fill: bool,

    /// A Redfile of the same schema, for a damaged one of which neither footer nor checkpoints are left
    #[arg(long, value_name = "FILE.red")]
    like: Option<String>,
}

impl LostArgs {
    pub(crate) fn narrow(&self, options: OpenOptions) -> Result<OpenOptions> {
        let cells = if self.null_fill { LostCells::Null } else { LostCells::DropRow };
        let schema = self.like.as_deref().map(redfile::schema_of).transpose()?;
        Ok(options.with_lost_cells(cells).with_redfile(RedfileOptions::default().with_schema(schema)))
    }
}

fn parse_moved(text: &str) -> Result<(String, String)> {
    let (from, to) =
        text.split_once('=').ok_or_else(|| Error::invalid("a moved folder is given as FROM=TO"))?;
    Ok((from.to_string(), to.to_string()))
}

/// A column and a path in it, as SQL would write them: `v['a.b']`.
fn parse_variant_path(text: &str) -> Result<(String, String)> {
    let parts = text.strip_suffix("']").and_then(|text| text.split_once("['"));
    match parts {
        Some((column, path)) if !column.is_empty() && !path.is_empty() => {
            Ok((column.to_string(), path.to_string()))
        }
        _ => Err(Error::invalid("a path of a column is given as COLUMN['PATH']")),
    }
}

/// What to read.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Files, folders, globs or URLs; several are read as one
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    #[command(flatten)]
    pub(crate) open: OpenArgs,
}

impl InputArgs {
    /// Opens the paths for their rows, and says what opening noticed.
    pub(crate) fn dataset(&self, words: &Words) -> Result<DatasetRef> {
        open_all(&self.open.options()?, &self.paths, words)
    }

    /// Opens the paths for what they say of themselves, which is true of a part of a table too.
    pub(crate) fn described(&self, words: &Words) -> Result<DatasetRef> {
        open_all(&self.open.options()?.with_partial(true), &self.paths, words)
    }
}

/// Opens paths as one dataset, and says what opening noticed.
pub(crate) fn open_all(options: &OpenOptions, paths: &[String], words: &Words) -> Result<DatasetRef> {
    let dataset = words.during("open", || options.open_all(paths))?;
    say_noticed(dataset.as_ref(), words);
    Ok(dataset)
}

/// Says what opening noticed, and which parts are not here.
pub(crate) fn say_noticed(dataset: &dyn Dataset, words: &Words) {
    words.warn(&dataset.findings());
    for absence in dataset.absences() {
        words.tell(format_args!("missing: {}", printable(&absence.finding().to_string())));
    }
}

/// Which rows by what is in them.
#[derive(Debug, Args)]
pub(crate) struct ConditionArgs {
    /// Only rows for which this is true, in SQL's words: "id > 10 AND name LIKE 'a%'"
    #[arg(short = 'w', long = "where", value_name = "CONDITION")]
    condition: Option<String>,
}

impl ConditionArgs {
    /// The dataset with only the rows wanted.
    pub(crate) fn narrow(&self, dataset: DatasetRef) -> Result<DatasetRef> {
        Ok(match &self.condition {
            Some(condition) => RowFilter::parse(condition, &dataset.schema())?.apply(dataset),
            None => dataset,
        })
    }
}

/// Which columns, and which rows by what is in them.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
    /// Only these columns, in this order
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    #[command(flatten)]
    condition: ConditionArgs,
}

impl RowArgs {
    /// The condition, as it could be typed.
    pub(crate) fn choices(&self) -> Option<String> {
        self.condition.condition.as_ref().map(|condition| format!("--where {condition:?}"))
    }

    /// The dataset with only the rows wanted, and a request for the columns wanted.
    pub(crate) fn narrow(&self, dataset: DatasetRef) -> Result<(DatasetRef, ScanRequest)> {
        let schema = dataset.schema();
        let projection = match &self.columns {
            Some(names) => Some(names.iter().map(|name| column_index(&schema, name)).collect::<Result<_>>()?),
            None => None,
        };
        Ok((self.condition.narrow(dataset)?, ScanRequest { projection, ..ScanRequest::default() }))
    }
}

/// Which rows by position.
#[derive(Debug, Args)]
pub(crate) struct PositionArgs {
    /// Only rows at these positions, the first row being 0: 10..20, 10.., ..20
    #[arg(long, value_name = "A..B", value_parser = parse_rows)]
    rows: Option<Range<u64>>,

    /// Stop after this many rows
    #[arg(short = 'n', long = "limit", value_name = "N")]
    limit: Option<u64>,
}

impl PositionArgs {
    /// Whether no row is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.rows.is_none() && self.limit.is_none()
    }

    pub(crate) fn narrow(&self, request: &mut ScanRequest) {
        request.rows = self.rows.clone().map(RowRanges::one);
        request.limit = self.limit;
    }
}

fn parse_rows(text: &str) -> Result<Range<u64>> {
    let malformed = || Error::invalid("rows are A..B, A.. or ..B, the first row being 0");
    let (start, end) = text.split_once("..").ok_or_else(malformed)?;
    let number = |text: &str, default| match text.trim() {
        "" => Ok(default),
        digits => digits.parse::<u64>().map_err(|_| malformed()),
    };
    let rows = number(start, 0)?..number(end, u64::MAX)?;
    if rows.start > rows.end {
        return Err(Error::invalid(format!("rows {text} end before they begin")));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_a_column_stands_in_brackets() {
        assert_eq!(parse_variant_path("v['a.b']").unwrap(), ("v".to_string(), "a.b".to_string()));
        for text in ["v", "v['']", "['a']", "v[a]"] {
            assert!(parse_variant_path(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rows_may_leave_out_either_end() {
        assert_eq!(parse_rows("3..7").unwrap(), 3..7);
        assert_eq!(parse_rows("3..").unwrap(), 3..u64::MAX);
        assert_eq!(parse_rows("..7").unwrap(), 0..7);
        assert_eq!(parse_rows("..").unwrap(), 0..u64::MAX);
        for text in ["", "5", "a..b", "7..3", "-1..2"] {
            assert!(parse_rows(text).is_err(), "{text}");
        }
    }
}
