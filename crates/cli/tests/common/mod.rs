//! A folder with small files, and the program run in it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const PEOPLE: &str = "\
id,name,score
1,ann,1.5
2,bob,
3,,2.25
4,\"dora, \"\"d\"\"\",-0.5
5,élodie,1e10
";

/// The folder; it goes away with the value.
pub struct Folder(TempDir);

impl Folder {
    /// `people.csv`, the same as `people.parquet`, and `broken/` with damaged copies of that.
    pub fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("people.csv", PEOPLE);
        folder.convert("people.csv", "people.parquet");
        let good = fs::read(folder.path("people.parquet")).unwrap();
        fs::create_dir(folder.path("broken")).unwrap();
        folder.write("broken/cut.parquet", &good[..good.len() - 9]);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn convert(&self, from: &str, to: &str) {
        let status = self.run(&["-q", "convert", from, to]).status().unwrap();
        assert!(status.success());
    }

    /// Copies a folder or file to a name in this one, so that everybody may read it, and may write beside it.
    pub fn copy(&self, from: &Path, name: &str) {
        let permit =
            |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let mut pending = vec![(from.to_path_buf(), self.path(name))];
        while let Some((from, to)) = pending.pop() {
            if !from.is_dir() {
                fs::copy(&from, &to).unwrap();
                permit(&to, 0o644);
                continue;
            }
            fs::create_dir_all(&to).unwrap();
            permit(&to, 0o755);
            for path in fs::read_dir(&from).unwrap().map(|entry| entry.unwrap().path()) {
                let copy = to.join(path.file_name().unwrap());
                pending.push((path, copy));
            }
        }
        permit(self.0.path(), 0o777);
    }

    /// Runs the program as somebody whom permissions bind: they do not bind the superuser.
    pub fn run_bound(&self, args: &[&str]) -> Output {
        let mut command = self.run(args);
        if fs::metadata(self.0.path()).unwrap().uid() == 0 {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    }

    /// Takes the permission away, runs the program, and gives it back.
    pub fn run_without_permission(&self, path: &str, args: &[&str]) -> Output {
        let path = self.path(path);
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let output = self.run_bound(args);
        fs::set_permissions(&path, before).unwrap();
        output
    }

    /// The program with arguments, in the folder, without terminal and without anything of the user's.
    pub fn run(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilaster"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null()).env_clear();
        command
    }
}

/// Snapshots without what differs between machines and versions.
pub fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.remove_info();
    settings.add_filter(r"pilaster(-cli)? (version )?\d+\.\d+\.\d+", "pilaster [version]");
    settings.add_filter(r"in \d+\.\d+ s", "in [time] s");
    settings
}

/// Tests that each compare a call's stdout, stderr and exit code with the snapshot of the test's name.
#[allow(unused_macros, reason = "not every test file lists commands")]
macro_rules! snapshots {
    ($($name:ident: $args:expr;)*) => {
        $(#[test]
        fn $name() {
            let folder = $crate::common::Folder::new();
            $crate::common::settings().bind(|| {
                insta_cmd::assert_cmd_snapshot!(stringify!($name), folder.run(&$args));
            });
        })*
    };
}
