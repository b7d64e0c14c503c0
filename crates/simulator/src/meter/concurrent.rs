//! At most so many in flight.

/// A concurrency limit, counted independently.
#[derive(Clone, Debug)]
pub struct Concurrent {
    slots: u32,
    in_flight: u64,
}

impl Concurrent {
    /// Nothing in flight.
    pub fn new(slots: u32) -> Self {
        Self {
            slots,
            in_flight: 0,
        }
    }

    /// Takes `cost`; how many are in flight, if too many.
    pub fn take(&mut self, cost: u32) -> Result<(), String> {
        self.in_flight += u64::from(cost);
        if self.in_flight <= u64::from(self.slots) {
            return Ok(());
        }
        Err(format!(
            "{} in flight, at most {}",
            self.in_flight, self.slots
        ))
    }

    /// Gives `cost` back.
    pub fn release(&mut self, cost: u32) {
        self.in_flight = self.in_flight.saturating_sub(u64::from(cost));
    }

    /// Whether `cost` still fits.
    pub fn allows(&self, cost: u32) -> bool {
        self.in_flight + u64::from(cost) <= u64::from(self.slots)
    }

    /// How many are in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Other numbers from now on. Nothing in flight is called back.
    pub fn change(&mut self, slots: u32) {
        self.slots = slots;
    }
}
