//! Hosts that are frozen and thawed in the middle of a run: what they do must not change.

use std::cell::Cell;
use std::rc::Rc;

use inhost_base::Random;
use inhost_socket::Host;
use inhost_stack::Stack;

/// More than any host of a scenario may hold.
const MEMORY_BYTES: usize = 1 << 30;

/// Freezes a host now and then, and goes on with the stack that its bytes give.
#[derive(Debug)]
pub struct Freezer {
    random: Random,
    one_in: u32,
    done: Rc<Cell<u64>>,
}

impl Freezer {
    /// Freezes a host at one of `one_in` moments, of which each of its rounds has four. Each freezing counts in `done`.
    pub fn new(seed: u64, one_in: u32, done: Rc<Cell<u64>>) -> Freezer {
        Freezer { random: Random::from_number(seed), one_in, done }
    }
    /// A moment at which `host` may be frozen.
    ///
    /// # Panics
    ///
    /// Where a stack cannot be frozen, its bytes are refused, or the stack that they give is frozen to other bytes.
    pub(crate) fn moment(&mut self, host: &Host) {
        if self.random.public_below(self.one_in) > 0 {
            return;
        }
        host.with_stack(|stack, _| {
            let bytes = stack.freeze().expect("a stack is frozen");
            let thawed = Stack::thaw(&bytes, MEMORY_BYTES).expect("a frozen stack is thawed");
            let again = thawed.freeze().expect("a thawed stack is frozen");
            assert!(bytes == again, "a thawed stack is frozen to other bytes");
            *stack = thawed;
        });
        self.done.set(self.done.get() + 1);
    }
}
