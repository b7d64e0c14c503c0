//! Tells when DNS is away and when it is back. While it is away messages wait
//! longer than they have to, and nothing else shows it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use outflow_resolver_dns::Directory;
use outflow_telemetry::catalogue::Event;
use outflow_telemetry::sink::Sink;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks until `stopped` is done. There is a line for each change, of which
/// there is at most one in each `dns.patience`.
pub async fn watch(directory: Arc<Directory>, sink: Arc<dyn Sink>, stopped: impl Future) {
    let looks = async {
        let mut was_away = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let is_away = directory.is_away();
            if is_away != was_away {
                was_away = is_away;
                sink.emit(&Event::Dns { is_away });
            }
        }
    };
    tokio::select! {
        () = looks => {}
        _ = stopped => {}
    }
}
