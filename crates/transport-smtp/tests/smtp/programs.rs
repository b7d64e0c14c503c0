//! Programs that tests run, and how long is waited for them.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Looks at what only shows itself by looking.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 2_400;

/// What a program says that must succeed; `package` has it.
pub fn run(command: &mut Command, package: &str) -> String {
    let output = command.output().unwrap_or_else(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        panic!("{program}: {error}. Install it: apt-get install {package}")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The number of a user (`-u`) or a group (`-g`).
pub fn id(kind: &str, user: &str) -> u32 {
    let id = run(Command::new("id").args([kind, user]), "coreutils");
    id.parse().unwrap()
}

/// Waits until something holds; whether it came to that.
pub fn wait(holds: impl Fn() -> bool) -> bool {
    (0..LOOKS_MAX).any(|_| {
        let held = holds();
        if !held {
            sleep(LOOK);
        }
        held
    })
}

/// Whether a server answers at a port, in the end.
pub fn answers(port: u16) -> bool {
    wait(|| TcpStream::connect(("127.0.0.1", port)).is_ok())
}

/// Ports that were free a moment ago.
pub fn free_ports(count: usize) -> Vec<u16> {
    let bind = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    let listeners: Vec<TcpListener> = (0..count).map(bind).collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    listeners.iter().map(port).collect()
}
