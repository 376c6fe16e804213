//! How long something took.

use std::time::{Duration, Instant};

use clap::ValueEnum;

/// What is counted as time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// What this thread spent on a processor, in the program and in the kernel: what other programs do meanwhile hardly
    /// matters.
    Cpu,
    /// What passed.
    Wall,
}

/// A clock that was started.
pub struct Stopwatch {
    clock: Clock,
    wall: Instant,
    cpu: Option<Duration>,
}

impl Clock {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wall => "wall",
        }
    }

    pub fn start(self) -> Stopwatch {
        Stopwatch { clock: self, wall: Instant::now(), cpu: thread_time() }
    }
}

impl Stopwatch {
    /// The time since the start. Where the system does not tell the time of a thread, what passed.
    pub fn elapsed(&self) -> Duration {
        match (self.clock, self.cpu, thread_time()) {
            (Clock::Cpu, Some(start), Some(now)) => now.saturating_sub(start),
            _ => self.wall.elapsed(),
        }
    }
}

#[cfg(unix)]
fn thread_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_time() -> Option<Duration> {
    None
}
