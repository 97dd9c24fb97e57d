//! Sleeping until an instant, by the wall clock as well as by the one that nobody sets; a wall clock that is set wakes
//! at once. Timers of the kernel count through suspend, and cost nothing until they are due.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nano_protocol::time::Timestamp;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::Moment;

/// The longest sleep where the kernel gives no timers: the wall clock may be set meanwhile.
const NAP: Duration = Duration::from_mins(1);

/// A pair of timers.
pub struct Alarm {
    timers: Option<(AsyncFd<OwnedFd>, AsyncFd<OwnedFd>)>,
}

impl Alarm {
    /// Makes one; without timers it looks every minute.
    pub fn new() -> Self {
        let made = timer(TimerfdClockId::Realtime).and_then(|wall| Ok((wall, timer(TimerfdClockId::Boottime)?)));
        let timers =
            made.inspect_err(|error| tracing::warn!(%error, "no timers can be had: clocks are looked at every minute"));
        Self { timers: timers.ok() }
    }

    /// Sleeps until the wall clock shows `wall`, is set, or the other clock shows `boot_ms`; may wake early.
    pub async fn sleep(&self, (wall, boot_ms): (Option<Timestamp>, Option<u64>), now: &Moment) {
        let Some((wall_timer, boot_timer)) = &self.timers else { return nap(wall, boot_ms, now).await };
        let on_set = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let wall_ms = wall.map(|at| at.0.unsigned_abs());
        let armed =
            arm(wall_timer, on_set, wall_ms).and_then(|()| arm(boot_timer, TimerfdTimerFlags::ABSTIME, boot_ms));
        if armed.is_err() {
            return nap(wall, boot_ms, now).await;
        }
        tokio::select! {
            () = rings(wall_timer), if wall.is_some() => {}
            () = rings(boot_timer), if boot_ms.is_some() => {}
            () = std::future::pending() => {}
        }
    }
}

#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
fn timer(clock: TimerfdClockId) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(clock, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    // SAFETY: an `OwnedFd` owns its descriptor, and nobody takes it out of the `AsyncFd`.
    Ok(unsafe { AsyncFd::register(timer) }?)
}

fn arm(timer: &AsyncFd<OwnedFd>, flags: TimerfdTimerFlags, at_ms: Option<u64>) -> io::Result<()> {
    // Zero disarms, so what was due at the beginning of time is due right after it.
    let at = at_ms.map_or(Duration::ZERO, |ms| Duration::from_millis(ms.max(1)));
    let at = Timespec::try_from(at).map_err(|_| Errno::INVAL)?;
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    match timerfd_settime(timer.get_ref(), flags, &Itimerspec { it_interval: never, it_value: at }) {
        // The clock was set before: it is armed all the same.
        Ok(_) | Err(Errno::CANCELED) => Ok(()),
        Err(why) => Err(why.into()),
    }
}

/// Returns once the timer is due, or its clock was set.
async fn rings(timer: &AsyncFd<OwnedFd>) {
    if let Ok(mut guard) = timer.readable().await {
        // Eight bytes, or ECANCELED where the clock was set: both mean that it is time to look.
        rustix::io::read(timer.get_ref(), &mut [0; 8]).ok();
        guard.clear_ready();
    }
}

async fn nap(wall: Option<Timestamp>, boot_ms: Option<u64>, now: &Moment) {
    let by_wall = wall.map(|at| Duration::from_millis((at.0 - now.wall.0).max(0).unsigned_abs()));
    let by_boot = boot_ms.map(|ms| Duration::from_millis(ms.saturating_sub(now.boot_ms)));
    let nearest = by_wall.into_iter().chain(by_boot).min();
    match nearest {
        Some(nap) => tokio::time::sleep(nap.min(NAP)).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    /// Sleeps, and tells whether that ended by itself within some seconds.
    async fn wakes(wall_ms: Option<i64>, boot_ms: Option<u64>) -> bool {
        let (alarm, now) = (Alarm::new(), Clock::default().moment());
        let due = (wall_ms.map(|ms| now.wall.plus_ms(ms)), boot_ms.map(|ms| now.boot_ms + ms));
        let slept = tokio::time::timeout(Duration::from_secs(5), async {
            loop {
                alarm.sleep(due, &now).await;
                let then = Clock::default().moment();
                if due.0.is_some_and(|due| due <= then.wall) || due.1.is_some_and(|due| due <= then.boot_ms) {
                    return;
                }
            }
        });
        slept.await.is_ok()
    }

    #[tokio::test]
    async fn wakes_by_either_clock() {
        for (wall_ms, boot_ms) in [
            (Some(30), None),
            (None, Some(30)),
            (Some(30), Some(3_600_000)),
            (Some(3_600_000), Some(30)),
            (Some(-5), None),
        ] {
            assert!(wakes(wall_ms, boot_ms).await, "{wall_ms:?} {boot_ms:?}");
        }
    }

    #[tokio::test]
    async fn sleeps_while_nothing_is_due() {
        let (alarm, now) = (Alarm::new(), Clock::default().moment());
        for due in [(None, None), (Some(now.wall.plus_ms(3_600_000)), None)] {
            let slept = tokio::time::timeout(Duration::from_millis(50), alarm.sleep(due, &now)).await;
            assert!(slept.is_err(), "{due:?}");
        }
    }
}
