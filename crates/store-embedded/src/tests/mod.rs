//! The store on real and on faulty disks.

mod conformance;
mod crashes;
mod damage;
mod driver;
mod flows;
mod harness;
mod kills;
mod long_time;
mod losses;
mod model;
mod named_harms;
mod old_format;
mod power_losses;
mod privacy;
mod receipts;
mod scratch;
mod space;
mod truth;
mod volume;
