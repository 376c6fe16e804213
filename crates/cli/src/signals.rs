//! What happens when the program is told to end, or writes more than it may.

/// Lets interruption and termination take away files that are not complete, and a write over the limit of file sizes be an error
/// like any other, which names the file.
#[cfg(unix)]
pub(crate) fn watch() -> std::io::Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            pilaster::core::atomic::abandon_all();
            // The parent sees which signal it was.
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn watch() -> std::io::Result<()> {
    Ok(())
}
