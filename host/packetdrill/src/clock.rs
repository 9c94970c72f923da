//! Virtual time: it stands still unless the tool asks for it or waits.

use crate::memory;
use crate::world::{blocking, call};
use core::ffi::{c_int, c_uint, c_void};
use inhost_base::Duration;
use libc::timeval;

/// How far a look at the clock moves it, so that a loop which waits for a time comes to an end.
const LOOK: Duration = Duration::from_micros(1);

/// Waits: time passes to the end of it.
pub(crate) unsafe extern "C" fn usleep(_: *mut c_void, micros: c_uint) -> c_int {
    let done = call(|world| {
        world.advance_to(world.now() + Duration::from_micros(u64::from(micros)));
        Ok(0)
    }) as c_int;
    blocking::yield_to_threads();
    done
}

/// What time it is. A thread whose call was blocked is told, once, the time at which the call was completed.
pub(crate) unsafe extern "C" fn gettimeofday(_: *mut c_void, place: *mut timeval, _: *mut c_void) -> c_int {
    call(|world| {
        let now = match blocking::take_completion_time() {
            Some(then) => then,
            None => {
                world.advance_to(world.now() + LOOK);
                world.now()
            }
        };
        let micros = now.as_micros();
        let time = timeval { tv_sec: (micros / 1_000_000) as i64, tv_usec: (micros % 1_000_000) as i64 };
        memory::write(place, time).map(|()| 0)
    }) as c_int
}
